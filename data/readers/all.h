// Readers: formats and entry points.
#pragma once

#include <memory>

#include "common/base/status.h"
#include "data/readers/registry.h"
#include "data/samples/dataset.h"

namespace kumo {

// Reader "cifar": the binary versions of CIFAR-10 and CIFAR-100 (Krizhevsky 2009). A sample is one
// or two label bytes and 3 x 32 x 32 bytes of red, green and blue.
//
//   CIFAR-10    label   pixels                    3073 bytes
//   CIFAR-100   coarse  fine    pixels            3074 bytes
//
// data.classes selects the version: 100 means CIFAR-100's fine labels, 20 its coarse ones, other
// values CIFAR-10's. A path is a file, or a folder with data_batch_*.bin, read in the order of
// their names.
//
// InvalidArgument, with file and byte, if a file does not consist of whole samples, a label is not
// below request.classes, or a folder has no such files.
Result<std::unique_ptr<Dataset>> OpenCifar(const ReaderRequest& request);
// From the files' sizes.
Result<DatasetExtents> MeasureCifar(const ReaderRequest& request);

// Reader "ctf": CNTK's text format (CTFDeserializer), plain or gzip'd.
//
//   7 |labels 0 1 0 |features 1.5 2 3e-2 |# anything
//   |labels 1:1 |features 3:1.5 17:0.25
//
// A line has named streams of numbers, each at most once. A stream is dense, or sparse if its
// values have indices ("3:1.5"). The number before the first '|' is a sequence number. Adjacent
// lines of one number are a sequence, and so is a line without a number. Sample k of a sequence
// consists of the k-th occurrence of each stream in it. A stream with a name that begins with '#'
// is a comment.
//
// The stream data.ctf_features becomes the field "image": float32, dense or sparse, of
// data.image_size, or 1 x n x 1 if that is empty and the first line has n dense values. The stream
// data.ctf_labels becomes the label: a class number, or a one-hot vector of data.classes values,
// dense or sparse; with data.classes = 0 numbers (float32), as many as on the first line. Other
// streams and lines without streams are skipped.
//
// Memory is proportional to the bytes read: sparse values stay sparse.
//
// InvalidArgument, with file, line and column, for malformed lines, values beyond the image size,
// labels not below request.classes, sequences in which the streams do not occur equally often, and
// incomplete samples that take more than 64 MiB. DataLoss if the file is damaged or its last line
// has no newline.
Result<std::unique_ptr<Dataset>> OpenCtf(const ReaderRequest& request);
// Parses the first sample, and counts the others without parsing their values.
Result<DatasetExtents> MeasureCtf(const ReaderRequest& request);

// Reader "idx": the IDX format of MNIST (LeCun, Cortes, Burges): a magic number, the extents, then
// one byte per element. Header numbers are 32-bit big-endian.
//
//   images   00 00 08 03  count  height  width   count * height * width pixels
//   labels   00 00 08 01  count                  count labels
//
// Both files may be gzip'd and are untrusted: extents are checked against the file's size before
// memory is allocated, a gzip file is unpacked at most one byte past the size in its header, and
// memory grows only with bytes that exist.
//
// Reads and verifies both files completely, even if `limit` keeps only the first samples. Packed
// images are unpacked once and mapped (unpacked_file.h) if there is a cache and they are large
// enough. DataLoss if a file is truncated, longer than its header says, or damaged; InvalidArgument
// if it is not IDX, the counts differ, or a label is not below `classes`. Messages name the file,
// the position, the value found and the remedy.
Result<std::unique_ptr<Dataset>> OpenIdx(const ReaderRequest& request);
// From the images' header, checked against the file's size; the rest is not read.
Result<DatasetExtents> MeasureIdx(const ReaderRequest& request);

// Reader "image_folder": a folder, perhaps in an archive, with one folder of images per class.
//
// Classes are numbered in the order of their names. The samples are the first image of each class,
// then the second of each, and so on, so that any prefix covers all classes.
//
// InvalidArgument if there are no images, images beside the class folders, or a number of classes
// other than request.classes; otherwise the errors of OpenImageSet.
Result<std::unique_ptr<Dataset>> OpenImageFolder(const ReaderRequest& request);
Result<DatasetExtents> MeasureImageFolder(const ReaderRequest& request);

// Reader "image_map": a text file with one line per sample, as for CNTK's ImageReader: image path,
// tab, class number. Paths are relative to the file's folder; paths into an archive have the form
// photos.zip@/cat/1.jpg or photos.zip/cat/1.jpg, all in the same archive.
//
// InvalidArgument, with file and line, for malformed lines or classes not below request.classes;
// otherwise the errors of OpenImageSet.
Result<std::unique_ptr<Dataset>> OpenImageMap(const ReaderRequest& request);
Result<DatasetExtents> MeasureImageMap(const ReaderRequest& request);

// Reader "masks": a folder of images (request.images) and a folder of masks (request.labels), each
// perhaps in an archive. An image and its mask have the same path below their folders, up to the
// ending; a mask is a PNG in grey or with a palette, whose numbers are classes (255: none).
//
// Samples are in the order of the images' paths, with the fields "image" and "mask". An image
// without a mask is a damaged sample; a mask without an image is left out, with a note.
//
// InvalidArgument if there are no images, or two with one name; otherwise the errors of
// OpenTableSet.
Result<std::unique_ptr<Dataset>> OpenMasks(const ReaderRequest& request);
// Lists the files, and reads an image's header.
Result<DatasetExtents> MeasureMasks(const ReaderRequest& request);

// Reader "table": a CSV file (csv.h) with a row for each sample, below a row with the names of the
// columns. request.columns says which columns make which fields (table_columns.h): pictures and
// masks, by paths relative to the file's folder (listed_paths.h), classes by numbers or names, and
// numbers. The file itself may lie in an archive, with paths in the archive.
//
// Names of classes are those of request.class_list, or those of the column in their order.
//
// InvalidArgument or DataLoss, with file, line and column, for text that is no CSV, a row with
// another number of fields, an empty path or class, a class outside the classes, or a cell that is
// no number; otherwise the errors of OpenTableSet. Errors of images name the row, too.
Result<std::unique_ptr<Dataset>> OpenTable(const ReaderRequest& request);
// Reads the file, and an image's header.
Result<DatasetExtents> MeasureTable(const ReaderRequest& request);

// Reader "text": windows of a text, each with the same text shifted by one token as its labels, for
// language models.
//
// One file is both sets; its last part validates. A token is a byte, or a character (a Unicode code
// point in UTF-8), numbered by the order of the code points that occur in the file. Training
// windows begin at random positions, drawn anew for each sample of each epoch; validation windows
// lie side by side.
//
// Functions; thread-safe. The opened set is immutable.
//
// InvalidArgument, with line and byte, if the text is not UTF-8, or if it is too short for a
// window.
Result<std::unique_ptr<Dataset>> OpenText(const ReaderRequest& request);
Result<DatasetExtents> MeasureText(const ReaderRequest& request);

// Reader "voc": images with annotated objects in the layout of Pascal VOC, in a folder or an
// archive.
//
//   Annotations/000005.xml      objects of image 000005 (voc_annotation.h)
//   JPEGImages/000005.jpg       the image (.jpg, .jpeg or .png)
//   ImageSets/Main/train.txt    names of the images of a set, one a line
//
// request.images names sets as PATH:SET; commas join several, as those of two years. Without :SET
// the training set is trainval and the validation set test; a layout without lists is one set, in
// the order of the names. Classes are those of request.class_list, or those of the set's objects in
// the order of their names.
//
// NotFound if there is no such set; InvalidArgument if a path has no such layout, or several;
// otherwise the errors of OpenDetectionSet, which has the rules for odd annotations.
Result<std::unique_ptr<Dataset>> OpenVoc(const ReaderRequest& request);
// Reads all annotations and the images' headers.
Result<DatasetExtents> MeasureVoc(const ReaderRequest& request);

// Reader "coco": images with annotated objects in COCO's form: request.images is the folder or the
// archive of the images, request.labels the JSON of their objects (coco_annotations.h), plain or in
// gzip, or a file in an archive.
//
// Samples are in the order of "images". Classes are those of request.class_list, or all categories
// in the order of their ids. Annotated crowds are difficult objects. Annotated sizes of images are
// trusted until the image is read.
//
// NotFound, InvalidArgument or DataLoss, with the file, for the JSON; otherwise the errors of
// OpenDetectionSet, which has the rules for odd annotations.
Result<std::unique_ptr<Dataset>> OpenCoco(const ReaderRequest& request);
// Reads the JSON, and the names of the images.
Result<DatasetExtents> MeasureCoco(const ReaderRequest& request);

}  // namespace kumo
