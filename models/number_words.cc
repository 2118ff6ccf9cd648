#include "models/number_words.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "common/base/did_you_mean.h"
#include "common/base/printable.h"
#include "common/base/text.h"

namespace kumo {
namespace {

// A word, and what its absence means.
struct NumberWord {
  std::string_view word;
  int64_t DataNumbers::*number;
  std::string_view of;       // the data
  std::string_view missing;  // completes "but ..."
};
constexpr NumberWord kWords[] = {
    {"vocabulary", &DataNumbers::vocabulary, "the number of tokens of a text",
     "the data are no text: write a number, or set data.reader = text"},
    {"classes", &DataNumbers::classes, "data.classes",
     "that is not set: write a number, or set data.classes"},
};
constexpr int64_t kLargest = std::numeric_limits<int32_t>::max();
constexpr int kDeepest = 16;  // parentheses

bool IsOfName(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// '.', '-' and '/' are of no expression that is right: an error then shows all of it.
bool IsOfExpression(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("+*() \t.-/").find(c) != std::string_view::npos;
}

// From the first character of a number to its end: "12", "1.5e+06".
size_t EndOfNumber(std::string_view text, size_t at) {
  for (; at < text.size(); ++at) {
    const bool is_sign =
        (text[at] == '+' || text[at] == '-') && (text[at - 1] == 'e' || text[at - 1] == 'E');
    if (!IsOfName(text[at]) && text[at] != '.' && !is_sign) break;
  }
  return at;
}

const NumberWord* Find(std::string_view word) {
  const auto* const found = std::ranges::find(kWords, word, &NumberWord::word);
  return found == std::end(kWords) ? nullptr : found;
}

// Whether the name that ends there is a field's, before ':' or '{'.
bool IsField(std::string_view text, size_t end) {
  const size_t next = text.find_first_not_of(" \t\r\n", end);
  return next != text.npos && (text[next] == ':' || text[next] == '{');
}

// Place in an expression: of a word that is a value, or of an operator. Comments and strings have
// none.
struct ExpressionPlace {
  const NumberWord* word = nullptr;  // null: an operator
  size_t begin = 0;
};

std::optional<ExpressionPlace> NextPlace(std::string_view text, size_t at) {
  while (at < text.size()) {
    const char c = text[at];
    if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
    } else if (c == '"' || c == '\'') {
      for (++at; at < text.size() && text[at] != c; ++at) at += text[at] == '\\' ? 1 : 0;
      ++at;
    } else if (c == '.' || std::isdigit(static_cast<unsigned char>(c)) != 0) {
      at = EndOfNumber(text, at + 1);
    } else if (IsOfName(c)) {
      size_t end = at;
      while (end < text.size() && IsOfName(text[end])) ++end;
      const NumberWord* word = Find(text.substr(at, end - at));
      if (word != nullptr && !IsField(text, end)) return ExpressionPlace{word, at};
      at = end;
    } else if (c == '+' || c == '*' || c == '(') {
      return ExpressionPlace{nullptr, at};
    } else {
      ++at;
    }
  }
  return std::nullopt;
}

// From a place in an expression to its end: before the next field's name, or what no expression
// has.
size_t EndOfExpression(std::string_view text, size_t at) {
  while (at < text.size()) {
    size_t end = at;
    while (end < text.size() && IsOfName(text[end])) ++end;
    if (end > at && IsField(text, end)) break;
    if (end == at && !IsOfExpression(text[at])) break;
    at = std::max(end, at + 1);
  }
  return at;
}

// "; did you mean classes?", of the first name in the expression that is no word.
std::string Suggestion(std::string_view expression) {
  std::vector<std::string> known;
  for (const NumberWord& one : kWords) known.emplace_back(one.word);
  for (size_t at = 0; at < expression.size();) {
    size_t end = at;
    while (end < expression.size() && IsOfName(expression[end])) ++end;
    const std::string_view name = expression.substr(at, end - at);
    if (!name.empty() && Find(name) == nullptr && !ParseNumber<int64_t>(name)) {
      return DidYouMean(name, known);
    }
    at = std::max(end, at + 1);
  }
  return "";
}

// Sum: product {+ product}; product: factor {* factor}; factor: number, word or (sum).
class Expression {
 public:
  Expression(std::string_view text, const DataNumbers& numbers) : text_(text), numbers_(numbers) {}

  // nullopt if it is no expression, above kLargest, or has a word that stands for nothing.
  std::optional<int64_t> Value() {
    const std::optional<int64_t> value = Sum(0);
    return Peek() == '\0' ? value : std::nullopt;
  }
  // The word that Value found to stand for nothing; null: none.
  const NumberWord* missing() const { return missing_; }

 private:
  char Peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  std::optional<int64_t> Sum(int depth) {
    std::optional<int64_t> value = Product(depth);
    while (value && Peek() == '+') {
      ++at_;
      const std::optional<int64_t> other = Product(depth);
      value = other ? Limited(*value + *other) : std::nullopt;
    }
    return value;
  }

  std::optional<int64_t> Product(int depth) {
    std::optional<int64_t> value = Factor(depth);
    while (value && Peek() == '*') {
      ++at_;
      const std::optional<int64_t> other = Factor(depth);
      value = other ? Limited(*value * *other) : std::nullopt;
    }
    return value;
  }

  std::optional<int64_t> Factor(int depth) {
    if (Peek() == '(') {
      ++at_;
      if (depth == kDeepest) return std::nullopt;
      const std::optional<int64_t> value = Sum(depth + 1);
      if (Peek() != ')') return std::nullopt;
      ++at_;
      return value;
    }
    const size_t begin = at_;
    while (at_ < text_.size() && IsOfName(text_[at_])) ++at_;
    const std::string_view name = text_.substr(begin, at_ - begin);
    if (const NumberWord* word = Find(name)) {
      if (numbers_.*word->number > 0) return Limited(numbers_.*word->number);
      missing_ = word;
      return std::nullopt;
    }
    const std::optional<int64_t> number = ParseNumber<int64_t>(name);
    return number ? Limited(*number) : std::nullopt;
  }

  static std::optional<int64_t> Limited(int64_t value) {
    return value > kLargest ? std::nullopt : std::optional(value);
  }

  const std::string_view text_;
  const DataNumbers& numbers_;
  size_t at_ = 0;
  const NumberWord* missing_ = nullptr;
};

}  // namespace

Result<std::string> WithNumbers(const std::string& text, const std::string& name,
                                const DataNumbers& numbers) {
  std::string made = text;
  size_t from = 0;
  while (const std::optional<ExpressionPlace> place = NextPlace(made, from)) {
    const auto where = [&] {
      const auto line =
          1 + std::count(made.begin(), made.begin() + static_cast<int64_t>(place->begin), '\n');
      return name + ":" + std::to_string(line) + ": ";
    };
    // ':' or ',' is between two values.
    size_t begin = place->begin;
    while (begin > from && (IsOfExpression(made[begin - 1]) || IsOfName(made[begin - 1]))) --begin;
    size_t end = EndOfExpression(made, place->begin);
    while (made[begin] == ' ' || made[begin] == '\t') ++begin;
    while (made[end - 1] == ' ' || made[end - 1] == '\t') --end;
    const std::string expression = made.substr(begin, end - begin);
    Expression parsed(expression, numbers);
    const std::optional<int64_t> value = parsed.Value();
    if (const NumberWord* const word = parsed.missing()) {
      return InvalidArgument(where() + "the word " + std::string(word->word) + " stands for " +
                             std::string(word->of) + ", but " + std::string(word->missing));
    }
    if (!value) {
      return InvalidArgument(where() + "\"" + Printable(expression, 80) +
                             "\" is no number: write a sum or product of numbers and of the words "
                             "vocabulary and classes, at most 2147483647" +
                             Suggestion(expression));
    }
    // Blanks keep the places of what follows.
    std::string number = std::to_string(*value);
    number.resize(std::max(number.size(), expression.size()), ' ');
    made.replace(begin, expression.size(), number);
    from = begin + number.size();
  }
  return made;
}

bool NeedsVocabulary(std::string_view text) {
  size_t from = 0;
  while (const std::optional<ExpressionPlace> place = NextPlace(text, from)) {
    if (place->word == nullptr) {
      from = place->begin + 1;
      continue;
    }
    if (place->word->number == &DataNumbers::vocabulary) return true;
    from = place->begin + place->word->word.size();
  }
  return false;
}

}  // namespace kumo
