// The manifest of one checkpoint, as values; manifest_json.hpp reads and writes it.
#pragma once

#include <checkrow/element.hpp>
#include <checkrow/format/constants.hpp>
#include <checkrow/plan.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace checkrow::inline v0::format {

struct column_schema {
  std::string name;
  column_shape shape;
  codec_choice codec{1, 0};  ///< when this checkpoint was written
  friend bool operator==(const column_schema&, const column_schema&) = default;
};

struct table_schema {
  std::string name;
  std::uint64_t rows = 0;
  codec_choice codec;                  ///< of the weights, when this checkpoint was written
  std::vector<column_schema> columns;  ///< the weights first, the others in order of name
  std::string id_space = "ordinal";    ///< the only one as yet
};

struct dense_schema {
  std::string name;
  element_type element = element_type::float32;
  std::uint8_t element_bytes = 4;
  std::uint64_t count = 0;
  friend bool operator==(const dense_schema&, const dense_schema&) = default;
};

struct state_schema {
  std::string name;
  std::uint64_t bytes = 0;
};

/// A codec that the checkpoint's chunks may name.
struct codec_schema {
  codec_choice codec;
  std::string name;
  std::uint32_t version = 1;
};

/// How much precision one column's rows lost in the save that wrote a segment: relative errors
/// ||read - had|| / ||had|| of the rows that were measured.
struct column_error {
  std::uint32_t table = 0, column = 0;  ///< indices
  std::uint64_t rows = 0;               ///< that were measured
  std::uint64_t every = 1;  ///< 1: all rows were; n: the first, and each n-th after it, of each chunk
  double mean = 0, largest = 0;
  std::uint64_t worst_row = 0;  ///< id of the row with the largest
};

/// One segment that a restore needs.
struct segment_entry {
  std::string name;
  std::uint32_t part = 0;
  std::uint64_t sequence = 0;  ///< of the save that wrote it
  attempt_id attempt{};
  std::uint64_t bytes = 0;
  std::uint64_t footer_hash = 0;
  std::uint64_t rows = 0;
  bool full = false;                   ///< it holds every row
  std::vector<column_error> errors{};  ///< of columns that lose precision, in order of table and column
};

/// The rows of one table that a part owns: first, first + stride, ... (count of them), and a range of
/// columns.
struct owned_rows {
  std::uint32_t table = 0;
  std::uint64_t first = 0, stride = 1, count = 0;
  std::uint32_t first_column = 0, columns = 0;
};

struct part_schema {
  std::uint32_t part = 0;
  std::vector<owned_rows> tables;
};

struct manifest {
  std::uint64_t sequence = 0;  ///< "newest" is the greatest
  std::uint64_t parent = 0;    ///< the sequence that the delta builds on; 0: none
  attempt_id attempt{};
  std::uint64_t step = 0;
  std::uint64_t created = 0;  ///< Unix seconds, for people and retention by age
  bool full = false;
  std::string strategy;
  std::vector<codec_schema> codecs;
  std::vector<table_schema> tables;  ///< in order of name, as are the next two
  std::vector<dense_schema> dense;
  std::vector<state_schema> states;
  std::vector<part_schema> parts;
  std::vector<segment_entry> segments;  ///< in order of application
  std::uint64_t deltas = 0;             ///< history: deltas since the newest full save, this one included
  double share_sum = 0, last_share = 0;
  std::uint64_t restores = 0;  ///< how often the model was really restored so far
  std::vector<std::pair<std::string, std::string>> user;
};

// ------------------------------------------------------------------------------------------------ blob names

/// What a blob's name says. Segments: SEQUENCE-ATTEMPT-pPART.segment; manifests: SEQUENCE-ATTEMPT.manifest.
struct blob_name {
  std::uint64_t sequence = 0;
  std::string attempt;  ///< 32 hex digits
  std::uint32_t part = 0;
  bool is_manifest = false;
};

[[nodiscard]] inline std::string padded(std::uint64_t value, std::size_t digits) {
  std::string text = std::to_string(value);
  return text.size() < digits ? std::string(digits - text.size(), '0') + text : text;
}
[[nodiscard]] inline std::string manifest_name(std::uint64_t sequence, const std::string& attempt) {
  return padded(sequence, 12) + "-" + attempt + ".manifest";
}
[[nodiscard]] inline std::string segment_name(std::uint64_t sequence, const std::string& attempt,
                                              std::uint32_t part) {
  return padded(sequence, 12) + "-" + attempt + "-p" + padded(part, 4) + ".segment";
}

namespace detail {
/// Takes decimal digits off the front of `text`; false where there is none, or too many.
[[nodiscard]] inline bool take_number(std::string_view& text, std::uint64_t& value) noexcept {
  std::size_t n = 0;
  for (value = 0; n < text.size() && n < 19 && text[n] >= '0' && text[n] <= '9'; ++n)
    value = value * 10 + std::uint64_t(text[n] - '0');
  text.remove_prefix(n);
  return n != 0;
}
[[nodiscard]] inline bool take(std::string_view& text, std::string_view expected) noexcept {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(expected.size());
  return true;
}
}  // namespace detail

/// False for a name that is not of this format: other files in a folder are left alone.
[[nodiscard]] inline bool parse_blob_name(std::string_view text, blob_name& name) {
  if (!detail::take_number(text, name.sequence) || !detail::take(text, "-") || text.size() < 32) return false;
  name.attempt = std::string(text.substr(0, 32));
  if (name.attempt.find_first_not_of("0123456789abcdef") != std::string::npos) return false;
  text.remove_prefix(32);
  name.is_manifest = text == ".manifest";
  if (name.is_manifest) return true;
  std::uint64_t part = 0;
  if (!detail::take(text, "-p") || !detail::take_number(text, part) || part > 0xffffffff) return false;
  name.part = std::uint32_t(part);
  return text == ".segment";
}

}  // namespace checkrow::inline v0::format
