#include "data/digits/digit_strokes.h"

#include <glog/logging.h>

namespace kumo {
namespace {

constexpr bool kCorner = true;

constexpr Knot kZeroRound[] = {{.55f, .02f}, {.28f, .12f}, {.14f, .48f}, {.24f, .86f}, {.50f, .98f},
                               {.76f, .86f}, {.86f, .50f}, {.74f, .12f}, {.50f, .02f}};
constexpr Knot kZeroCrossed[] = {{.66f, .12f}, {.44f, .02f}, {.24f, .22f}, {.20f, .60f},
                                 {.36f, .95f}, {.62f, .92f}, {.78f, .58f}, {.72f, .20f},
                                 {.52f, .06f}, {.34f, .10f}};
constexpr Stroke kZeroStrokes[] = {kZeroRound, kZeroCrossed};
constexpr DigitStyle kZero[] = {{&kZeroStrokes[0], 1}, {&kZeroStrokes[1], 1}};

constexpr Knot kOneStem[] = {{.50f, .00f, kCorner}, {.50f, .50f}, {.50f, 1.0f, kCorner}};
constexpr Knot kOneFlag[] = {{.30f, .22f, kCorner}, {.53f, .00f, kCorner}, {.52f, 1.0f, kCorner}};
constexpr Knot kOneBase[] = {{.28f, 1.0f, kCorner}, {.76f, .99f, kCorner}};
constexpr Stroke kOneStrokes[] = {kOneStem, kOneFlag, kOneBase};
// The bare stem is by far the most frequent way.
constexpr DigitStyle kOne[] = {{&kOneStrokes[0], 1},
                               {&kOneStrokes[0], 1},
                               {&kOneStrokes[0], 1},
                               {&kOneStrokes[1], 1},
                               {&kOneStrokes[1], 2}};

constexpr Knot kTwoPlain[] = {{.18f, .25f},          {.32f, .05f},         {.60f, .02f},
                              {.78f, .22f},          {.66f, .50f},         {.40f, .75f},
                              {.15f, .97f, kCorner}, {.85f, .95f, kCorner}};
constexpr Knot kTwoLooped[] = {{.20f, .22f}, {.42f, .02f}, {.74f, .14f}, {.72f, .42f},
                               {.46f, .76f}, {.22f, .95f}, {.12f, .86f}, {.28f, .78f},
                               {.56f, .90f}, {.88f, .96f}};
constexpr Stroke kTwoStrokes[] = {kTwoPlain, kTwoLooped};
constexpr DigitStyle kTwo[] = {{&kTwoStrokes[0], 1}, {&kTwoStrokes[1], 1}};

constexpr Knot kThreeRound[] = {{.20f, .15f},          {.50f, .00f}, {.78f, .18f}, {.66f, .40f},
                                {.42f, .48f, kCorner}, {.70f, .56f}, {.84f, .76f}, {.62f, .97f},
                                {.35f, .98f},          {.15f, .85f}};
constexpr Knot kThreeFlat[] = {{.18f, .04f, kCorner}, {.78f, .04f, kCorner}, {.45f, .42f, kCorner},
                               {.72f, .50f},          {.82f, .74f},          {.60f, .97f},
                               {.30f, .98f},          {.14f, .86f}};
constexpr Stroke kThreeStrokes[] = {kThreeRound, kThreeFlat};
constexpr DigitStyle kThree[] = {
    {&kThreeStrokes[0], 1}, {&kThreeStrokes[0], 1}, {&kThreeStrokes[1], 1}};

constexpr Knot kFourOpen[] = {
    {.25f, .05f, kCorner}, {.20f, .30f}, {.16f, .55f, kCorner}, {.84f, .52f, kCorner}};
constexpr Knot kFourOpenStem[] = {{.72f, .02f, kCorner}, {.68f, .50f}, {.62f, 1.0f, kCorner}};
constexpr Knot kFourClosed[] = {
    {.64f, .00f, kCorner}, {.12f, .62f, kCorner}, {.90f, .60f, kCorner}};
constexpr Knot kFourClosedStem[] = {{.64f, .00f, kCorner}, {.63f, .50f}, {.62f, 1.0f, kCorner}};
constexpr Knot kFourRound[] = {
    {.18f, .05f}, {.16f, .35f}, {.30f, .52f}, {.58f, .48f}, {.76f, .30f}};
constexpr Knot kFourRoundStem[] = {{.80f, .00f, kCorner}, {.74f, .50f}, {.66f, 1.0f, kCorner}};
constexpr Stroke kFourStrokes[] = {kFourOpen,       kFourOpenStem, kFourClosed,
                                   kFourClosedStem, kFourRound,    kFourRoundStem};
constexpr DigitStyle kFour[] = {
    {&kFourStrokes[0], 2}, {&kFourStrokes[2], 2}, {&kFourStrokes[4], 2}};

constexpr Knot kFiveOneStroke[] = {
    {.80f, .04f, kCorner}, {.30f, .04f, kCorner}, {.24f, .44f, kCorner}, {.55f, .38f},
    {.82f, .60f},          {.72f, .90f},          {.42f, 1.0f},          {.15f, .88f}};
constexpr Knot kFiveBody[] = {{.32f, .05f, kCorner}, {.25f, .42f, kCorner}, {.55f, .40f},
                              {.80f, .62f},          {.66f, .92f},          {.38f, .98f},
                              {.14f, .86f}};
constexpr Knot kFiveRoof[] = {{.32f, .06f, kCorner}, {.84f, .02f, kCorner}};
constexpr Stroke kFiveStrokes[] = {kFiveOneStroke, kFiveBody, kFiveRoof};
constexpr DigitStyle kFive[] = {{&kFiveStrokes[0], 1}, {&kFiveStrokes[1], 2}};

constexpr Knot kSixRound[] = {{.70f, .02f}, {.42f, .20f}, {.22f, .52f}, {.20f, .80f}, {.42f, .99f},
                              {.70f, .90f}, {.76f, .66f}, {.56f, .52f}, {.34f, .60f}, {.22f, .80f}};
constexpr Knot kSixSteep[] = {{.48f, .00f}, {.28f, .35f}, {.18f, .72f}, {.38f, .98f},
                              {.66f, .90f}, {.70f, .68f}, {.46f, .58f}, {.22f, .76f}};
constexpr Stroke kSixStrokes[] = {kSixRound, kSixSteep};
constexpr DigitStyle kSix[] = {{&kSixStrokes[0], 1}, {&kSixStrokes[1], 1}};

constexpr Knot kSevenPlain[] = {
    {.15f, .05f, kCorner}, {.82f, .04f, kCorner}, {.60f, .45f}, {.42f, 1.0f, kCorner}};
constexpr Knot kSevenBar[] = {{.28f, .50f, kCorner}, {.80f, .46f, kCorner}};
constexpr Knot kSevenSerif[] = {{.14f, .20f, kCorner},
                                {.18f, .04f, kCorner},
                                {.84f, .04f, kCorner},
                                {.54f, .58f},
                                {.46f, 1.0f}};
constexpr Stroke kSevenStrokes[] = {kSevenSerif, kSevenPlain, kSevenBar};
constexpr DigitStyle kSeven[] = {
    {&kSevenStrokes[1], 1}, {&kSevenStrokes[1], 1}, {&kSevenStrokes[1], 2}, {&kSevenStrokes[0], 1}};

constexpr Knot kEightOneStroke[] = {{.70f, .12f}, {.44f, .02f}, {.24f, .20f}, {.44f, .44f},
                                    {.72f, .66f}, {.70f, .92f}, {.42f, .99f}, {.22f, .84f},
                                    {.30f, .62f}, {.56f, .44f}, {.76f, .22f}, {.66f, .08f}};
constexpr Knot kEightUpper[] = {{.50f, .47f}, {.26f, .30f}, {.34f, .06f},
                                {.66f, .06f}, {.74f, .30f}, {.50f, .47f}};
constexpr Knot kEightLower[] = {{.50f, .47f}, {.20f, .66f}, {.28f, .95f},
                                {.70f, .96f}, {.80f, .68f}, {.50f, .47f}};
constexpr Stroke kEightStrokes[] = {kEightOneStroke, kEightUpper, kEightLower};
constexpr DigitStyle kEight[] = {
    {&kEightStrokes[0], 1}, {&kEightStrokes[0], 1}, {&kEightStrokes[1], 2}};

constexpr Knot kNineStraight[] = {{.74f, .20f},          {.50f, .02f}, {.24f, .16f},
                                  {.22f, .40f},          {.46f, .52f}, {.70f, .36f},
                                  {.77f, .12f, kCorner}, {.73f, .50f}, {.66f, 1.0f, kCorner}};
constexpr Knot kNineHooked[] = {{.74f, .22f}, {.52f, .02f}, {.24f, .18f},
                                {.26f, .44f}, {.52f, .50f}, {.75f, .22f, kCorner},
                                {.76f, .60f}, {.62f, .92f}, {.30f, .96f}};
constexpr Stroke kNineStrokes[] = {kNineStraight, kNineHooked};
constexpr DigitStyle kNine[] = {
    {&kNineStrokes[0], 1}, {&kNineStrokes[0], 1}, {&kNineStrokes[1], 1}};

}  // namespace

std::span<const DigitStyle> DigitStyles(int digit) {
  switch (digit) {
    case 0:
      return kZero;
    case 1:
      return kOne;
    case 2:
      return kTwo;
    case 3:
      return kThree;
    case 4:
      return kFour;
    case 5:
      return kFive;
    case 6:
      return kSix;
    case 7:
      return kSeven;
    case 8:
      return kEight;
    case 9:
      return kNine;
  }
  LOG(FATAL) << "no digit: " << digit;
}

}  // namespace kumo
