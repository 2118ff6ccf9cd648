// Formats of what programs write of a trained network: files of other programs (`kumo export`), and
// answers (`kumo predict`).
#pragma once

#include <span>

#include "common/base/choice.h"

namespace kumo {

enum class ExportFormat { kOnnx, kSafetensors, kNpz };
inline constexpr Choice<ExportFormat> kExportFormats[] = {
    {ExportFormat::kOnnx, "onnx"},
    {ExportFormat::kSafetensors, "safetensors"},
    {ExportFormat::kNpz, "npz"},
};
constexpr std::span<const Choice<ExportFormat>> ChoicesOf(ExportFormat) { return kExportFormats; }

// A continued text is printed as kText or kJson, other answers as kTable, kJson or kCsv.
enum class AnswerFormat { kTable, kJson, kCsv, kText };
inline constexpr Choice<AnswerFormat> kAnswerFormats[] = {
    {AnswerFormat::kTable, "table"},
    {AnswerFormat::kJson, "json"},
    {AnswerFormat::kCsv, "csv"},
    {AnswerFormat::kText, "text"},
};
constexpr std::span<const Choice<AnswerFormat>> ChoicesOf(AnswerFormat) { return kAnswerFormats; }

}  // namespace kumo
