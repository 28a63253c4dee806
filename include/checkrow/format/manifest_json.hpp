// The manifest's JSON. The only header that includes nlohmann/json.
#pragma once

#include <checkrow/error.hpp>
#include <checkrow/format/bytes.hpp>
#include <checkrow/format/hash.hpp>
#include <checkrow/format/manifest.hpp>
#include <nlohmann/json.hpp>

namespace checkrow::inline v0::format {

namespace detail {

using json = nlohmann::json;

/// Reads values out of JSON that anybody may have written: every type and presence is checked before the get,
/// and the first thing that does not fit is remembered.
class json_reader {
 public:
  explicit json_reader(std::string& wrong) : wrong_(wrong) {}

  [[nodiscard]] const json& at(const json& object, const char* key) {
    static const json none;
    if (object.is_object())
      if (const auto found = object.find(key); found != object.end()) return *found;
    fail(key, "is missing");
    return none;
  }
  template <class T>
  void number(const json& object, const char* key, T& out) {
    const json& value = at(object, key);
    if (!value.is_number_unsigned()) return fail(key, "is no unsigned integer");
    const auto wide = value.get<std::uint64_t>();
    if (wide > std::uint64_t(T(~T{}))) return fail(key, "is too large");
    out = T(wide);
  }
  void real(const json& object, const char* key, double& out) {
    const json& value = at(object, key);
    value.is_number() ? void(out = value.get<double>()) : fail(key, "is no number");
  }
  void flag(const json& object, const char* key, bool& out) {
    const json& value = at(object, key);
    value.is_boolean() ? void(out = value.get<bool>()) : fail(key, "is neither true nor false");
  }
  void text(const json& object, const char* key, std::string& out) {
    const json& value = at(object, key);
    value.is_string() ? void(out = value.get_ref<const std::string&>()) : fail(key, "is no string");
  }
  void bytes(const json& object, const char* key, std::span<std::uint8_t> out) {
    std::string digits;
    text(object, key, digits);
    if (!unhex(digits, out)) fail(key, "has not the right number of hex digits");
  }
  void hash(const json& object, const char* key, std::uint64_t& out) {
    std::array<std::uint8_t, 8> big_endian{};
    bytes(object, key, big_endian);
    out = 0;
    for (const std::uint8_t byte : big_endian) out = out << 8 | byte;
  }
  template <class T, class Read>
  void list(const json& object, const char* key, std::vector<T>& out, Read&& read) {
    const json& values = at(object, key);
    if (!values.is_array()) return fail(key, "is no array");
    for (const json& value : values) read(value, out.emplace_back());
  }

 private:
  void fail(const char* key, const char* why) {
    if (wrong_.empty()) wrong_ = std::string("\"") + key + "\" " + why;
  }
  std::string& wrong_;
};

[[nodiscard]] inline json to_json(codec_choice codec) { return {{"id", codec.id}, {"bits", codec.bits}}; }

inline void read(json_reader& in, const json& from, codec_choice& codec) {
  in.number(from, "id", codec.id);
  in.number(from, "bits", codec.bits);
}

[[nodiscard]] inline json element_json(element_type element, std::uint8_t bytes) {
  return {{"code", std::uint8_t(element)}, {"name", to_string(element)}, {"bytes", bytes}};
}
inline void read_element(json_reader& in, const json& from, element_type& element, std::uint8_t& bytes) {
  const json& described = in.at(from, "element");
  std::uint8_t code = 0;
  in.number(described, "code", code);
  in.number(described, "bytes", bytes);
  element = element_type(code);
}

[[nodiscard]] inline json tables_json(const std::vector<table_schema>& tables) {
  json out = json::array();
  for (const table_schema& table : tables) {
    json columns = json::array();
    for (const column_schema& column : table.columns)
      columns.push_back({{"name", column.name},
                         {"element", element_json(column.shape.element, column.shape.element_bytes)},
                         {"width", column.shape.width}});
    out.push_back({{"name", table.name},
                   {"rows", table.rows},
                   {"id_space", "ordinal"},
                   {"initializer", nullptr},
                   {"codec", to_json(table.codec)},
                   {"columns", std::move(columns)}});
  }
  return out;
}

inline void read_table(json_reader& in, const json& from, table_schema& table) {
  in.text(from, "name", table.name);
  in.number(from, "rows", table.rows);
  read(in, in.at(from, "codec"), table.codec);
  in.list(from, "columns", table.columns, [&](const json& described, column_schema& column) {
    in.text(described, "name", column.name);
    read_element(in, described, column.shape.element, column.shape.element_bytes);
    in.number(described, "width", column.shape.width);
  });
}

[[nodiscard]] inline json parts_json(const std::vector<part_schema>& parts) {
  json out = json::array();
  for (const part_schema& part : parts) {
    json tables = json::array();
    for (const owned_rows& owned : part.tables)
      tables.push_back({{"table", owned.table},
                        {"rows", {{"first", owned.first}, {"stride", owned.stride}, {"count", owned.count}}},
                        {"columns", {{"first", owned.first_column}, {"count", owned.columns}}}});
    out.push_back({{"part", part.part}, {"tables", std::move(tables)}});
  }
  return out;
}

inline void read_part(json_reader& in, const json& from, part_schema& part) {
  in.number(from, "part", part.part);
  in.list(from, "tables", part.tables, [&](const json& described, owned_rows& owned) {
    in.number(described, "table", owned.table);
    const json &rows = in.at(described, "rows"), &columns = in.at(described, "columns");
    in.number(rows, "first", owned.first);
    in.number(rows, "stride", owned.stride);
    in.number(rows, "count", owned.count);
    in.number(columns, "first", owned.first_column);
    in.number(columns, "count", owned.columns);
  });
}

[[nodiscard]] inline json segments_json(const std::vector<segment_entry>& segments) {
  json out = json::array();
  for (const segment_entry& segment : segments)
    out.push_back({{"name", segment.name},
                   {"part", segment.part},
                   {"sequence", segment.sequence},
                   {"attempt", hex(segment.attempt)},
                   {"bytes", segment.bytes},
                   {"footer_hash", hex(segment.footer_hash)},
                   {"rows", segment.rows},
                   {"full", segment.full}});
  return out;
}

inline void read_segment(json_reader& in, const json& from, segment_entry& segment) {
  in.text(from, "name", segment.name);
  in.number(from, "part", segment.part);
  in.number(from, "sequence", segment.sequence);
  in.bytes(from, "attempt", segment.attempt);
  in.number(from, "bytes", segment.bytes);
  in.hash(from, "footer_hash", segment.footer_hash);
  in.number(from, "rows", segment.rows);
  in.flag(from, "full", segment.full);
}

/// The members that are lists of small things.
inline void add_lists(const manifest& of, json& out) {
  out["tables"] = tables_json(of.tables);
  out["parts"] = parts_json(of.parts);
  out["segments"] = segments_json(of.segments);
  for (const char* key : {"codecs", "dense", "states", "user"}) out[key] = json::array();
  for (const codec_schema& codec : of.codecs) {
    json described = to_json(codec.codec);
    described["name"] = codec.name;
    described["version"] = codec.version;
    out["codecs"].push_back(std::move(described));
  }
  for (const dense_schema& dense : of.dense)
    out["dense"].push_back({{"name", dense.name},
                            {"element", element_json(dense.element, dense.element_bytes)},
                            {"count", dense.count}});
  for (const state_schema& state : of.states)
    out["states"].push_back({{"name", state.name}, {"bytes", state.bytes}});
  for (const auto& [key, value] : of.user) out["user"].push_back({{"key", key}, {"value", value}});
}

inline void read_lists(json_reader& in, const json& from, manifest& out) {
  in.list(from, "tables", out.tables, [&](const json& j, table_schema& table) { read_table(in, j, table); });
  in.list(from, "parts", out.parts, [&](const json& j, part_schema& part) { read_part(in, j, part); });
  in.list(from, "segments", out.segments, [&](const json& j, segment_entry& s) { read_segment(in, j, s); });
  in.list(from, "codecs", out.codecs, [&](const json& j, codec_schema& codec) {
    read(in, j, codec.codec);
    in.text(j, "name", codec.name);
    in.number(j, "version", codec.version);
  });
  in.list(from, "dense", out.dense, [&](const json& j, dense_schema& dense) {
    in.text(j, "name", dense.name);
    read_element(in, j, dense.element, dense.element_bytes);
    in.number(j, "count", dense.count);
  });
  in.list(from, "states", out.states, [&](const json& j, state_schema& state) {
    in.text(j, "name", state.name);
    in.number(j, "bytes", state.bytes);
  });
  in.list(from, "user", out.user, [&](const json& j, std::pair<std::string, std::string>& pair) {
    in.text(j, "key", pair.first);
    in.text(j, "value", pair.second);
  });
}

/// The last member, `,"checksum":"<16 hex digits>"}` and a newline, is the hash of every byte before it.
inline constexpr std::string_view checksum_key = ",\"checksum\":\"";
inline constexpr std::string_view checksum_end = "\"}\n";
inline constexpr std::size_t checksum_bytes = checksum_key.size() + 16 + checksum_end.size();

[[nodiscard]] inline std::string checksum_of(std::string_view text) {
  return std::string(checksum_key) + hex(hash(std::as_bytes(std::span(text)))) + std::string(checksum_end);
}

[[nodiscard]] inline error corrupt_manifest(const std::string& name, std::string what) {
  return {error_kind::corrupt, std::move(what), name, "restore falls back to the checkpoint before it"};
}

}  // namespace detail

/// The manifest's blob: one line of JSON, members in order of name, the checksum last.
[[nodiscard]] inline std::string write_manifest(const manifest& of) {
  detail::json out;
  out["format"] = "checkrow";
  out["version"] = version;
  out["provisional"] = provisional;
  out["compatible_features"] = detail::json::array();
  out["incompatible_features"] = detail::json::array();
  out["sequence"] = of.sequence;
  out["parent"] = of.parent;
  out["attempt"] = hex(of.attempt);
  out["step"] = of.step;
  out["created"] = of.created;
  out["full"] = of.full;
  out["strategy"] = of.strategy;
  out["history"] = {{"deltas", of.deltas}, {"share_sum", of.share_sum}, {"last_share", of.last_share}};
  out["restores"] = of.restores;
  detail::add_lists(of, out);
  std::string text = out.dump(-1, ' ', false, detail::json::error_handler_t::replace);
  text.pop_back();  // the closing brace comes back with the checksum
  return text + detail::checksum_of(text);
}

/// Reads a manifest from untrusted bytes. `name` is the blob's, for messages. Corrupt: not what was written;
/// unsupported: whole, but of another version or with a feature that this version does not know, by name.
[[nodiscard]] inline result<manifest> read_manifest(std::string_view text, const std::string& name) {
  if (text.size() <= detail::checksum_bytes)
    return detail::corrupt_manifest(name, "the manifest is too short");
  const std::string_view body = text.substr(0, text.size() - detail::checksum_bytes);
  if (text.substr(body.size()) != detail::checksum_of(body))
    return detail::corrupt_manifest(name, "the manifest's checksum does not match");
  const detail::json in = detail::json::parse(std::string(body) + "}", nullptr, false);
  if (!in.is_object()) return detail::corrupt_manifest(name, "the manifest is no JSON object");

  std::string wrong;
  detail::json_reader reader(wrong);
  std::string format_name;
  std::uint32_t format_version = 0;
  std::vector<std::string> features;
  reader.text(in, "format", format_name);
  reader.number(in, "version", format_version);
  reader.list(in, "incompatible_features", features, [](const detail::json& j, std::string& feature) {
    feature = j.is_string() ? j.get<std::string>() : j.dump();
  });
  if (wrong.empty() && format_name != "checkrow") wrong = "\"format\" is not \"checkrow\"";
  if (!wrong.empty()) return detail::corrupt_manifest(name, wrong);
  if (format_version != version)
    return error{
        error_kind::unsupported, "the checkpoint has format version " + std::to_string(format_version), name,
        "read it with a checkrow that knows that version; this one knows " + std::to_string(version)};
  if (!features.empty())
    return error{error_kind::unsupported, "the checkpoint needs the feature \"" + features.front() + "\"",
                 name, "read it with a checkrow that knows that feature"};

  manifest out;
  reader.number(in, "sequence", out.sequence);
  reader.number(in, "parent", out.parent);
  reader.bytes(in, "attempt", out.attempt);
  reader.number(in, "step", out.step);
  reader.number(in, "created", out.created);
  reader.flag(in, "full", out.full);
  reader.text(in, "strategy", out.strategy);
  const detail::json& history = reader.at(in, "history");
  reader.number(history, "deltas", out.deltas);
  reader.real(history, "share_sum", out.share_sum);
  reader.real(history, "last_share", out.last_share);
  reader.number(in, "restores", out.restores);
  detail::read_lists(reader, in, out);
  if (!wrong.empty()) return detail::corrupt_manifest(name, wrong);
  return out;
}

}  // namespace checkrow::inline v0::format
