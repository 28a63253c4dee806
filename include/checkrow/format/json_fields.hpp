// The parts of a manifest as JSON, one function to write and one to read each.
#pragma once

#include <checkrow/format/bytes.hpp>
#include <checkrow/format/json_text.hpp>
#include <checkrow/format/manifest.hpp>

namespace checkrow::inline v0::format {

namespace detail {

// ----------------------------------------------------------------------------------------------------
// writing, members in order of name

inline void write_members(json_writer& out, codec_choice codec) {
  out.put("bits", codec.bits);
  out.put("id", codec.id);
}

inline void write_element(json_writer& out, element_type element, std::uint8_t bytes) {
  out.open("element", '{');
  out.put("bytes", bytes);
  out.put("code", std::uint8_t(element));
  out.put("name", to_string(element));
  out.close('}');
}

inline void write_members(json_writer& out, const column_schema& column) {
  out.open("codec", '{');
  write_members(out, column.codec);
  out.close('}');
  write_element(out, column.shape.element, column.shape.element_bytes);
  out.put("name", column.name);
  out.put("width", column.shape.width);
}

inline void write_members(json_writer& out, const owned_rows& owned) {
  out.open("columns", '{');
  out.put("count", owned.columns);
  out.put("first", owned.first_column);
  out.close('}');
  out.open("rows", '{');
  out.put("count", owned.count);
  out.put("first", owned.first);
  out.put("stride", owned.stride);
  out.close('}');
  out.put("table", owned.table);
}

inline void write_members(json_writer& out, const column_error& error) {
  out.put("column", error.column);
  out.put("every", error.every);
  out.put_real("largest", error.largest);
  out.put_real("mean", error.mean);
  out.put("rows", error.rows);
  out.put("table", error.table);
  out.put("worst_row", error.worst_row);
}

inline void write_members(json_writer& out, const codec_schema& codec) {
  write_members(out, codec.codec);
  out.put("name", codec.name);
  out.put("version", codec.version);
}

inline void write_members(json_writer& out, const dense_schema& dense) {
  out.put("count", dense.count);
  write_element(out, dense.element, dense.element_bytes);
  out.put("name", dense.name);
}

inline void write_members(json_writer& out, const state_schema& state) {
  out.put("bytes", state.bytes);
  out.put("name", state.name);
}

inline void write_members(json_writer& out, const std::pair<std::string, std::string>& pair) {
  out.put("key", pair.first);
  out.put("value", pair.second);
}

inline void write_members(json_writer& out, const table_schema& table);
inline void write_members(json_writer& out, const part_schema& part);
inline void write_members(json_writer& out, const segment_entry& segment);

template <class T>
void write_list(json_writer& out, const char* key, const std::vector<T>& items) {
  out.open(key, '[');
  for (const T& item : items) {
    out.open(nullptr, '{');
    write_members(out, item);
    out.close('}');
  }
  out.close(']');
}

inline void write_members(json_writer& out, const table_schema& table) {
  out.open("codec", '{');
  write_members(out, table.codec);
  out.close('}');
  write_list(out, "columns", table.columns);
  out.put("id_space", table.id_space);
  out.put_literal("initializer", "null");
  out.put("name", table.name);
  out.put("rows", table.rows);
}

inline void write_members(json_writer& out, const part_schema& part) {
  out.put("part", part.part);
  write_list(out, "tables", part.tables);
}

inline void write_members(json_writer& out, const segment_entry& segment) {
  out.put("attempt", hex(segment.attempt));
  out.put("bytes", segment.bytes);
  write_list(out, "errors", segment.errors);
  out.put("footer_hash", hex(segment.footer_hash));
  out.put_flag("full", segment.full);
  out.put("name", segment.name);
  out.put("part", segment.part);
  out.put("rows", segment.rows);
  out.put("sequence", segment.sequence);
}

// ----------------------------------------------------------------------------------------------------
// reading

/// Reads values out of JSON that anybody may have written: every type and presence is checked, and the first
/// thing that does not fit is remembered.
class json_reader {
 public:
  explicit json_reader(std::string& wrong) : wrong_(wrong) {}

  [[nodiscard, gnu::noinline]] json_view at(json_view object, const char* key) {
    json_view name, value;
    std::string unquoted;
    if (object.is('{'))
      for (json_items members(object); members.next(name, value);)
        if (name.get(unquoted) && unquoted == key) return value;
    fail(key, "is missing");
    return {"null"};
  }
  [[nodiscard, gnu::noinline]] std::uint64_t integer(json_view object, const char* key, std::uint64_t most) {
    std::uint64_t found = 0;
    if (at(object, key).get(found) && found <= most) return found;
    fail(key, "is no unsigned integer of its range");
    return 0;
  }
  template <class T>
  void number(json_view object, const char* key, T& out) {
    out = T(integer(object, key, std::uint64_t(T(~T{}))));
  }
  [[gnu::noinline]] void real(json_view object, const char* key, double& out) {
    if (!at(object, key).get(out)) fail(key, "is no number");
  }
  [[gnu::noinline]] void flag(json_view object, const char* key, bool& out) {
    const std::string_view value = at(object, key).text;
    if (value != "true" && value != "false") fail(key, "is neither true nor false");
    out = value == "true";
  }
  [[gnu::noinline]] void text(json_view object, const char* key, std::string& out) {
    if (!at(object, key).get(out)) fail(key, "is no string");
  }
  [[gnu::noinline]] void bytes(json_view object, const char* key, std::span<std::uint8_t> out) {
    std::string digits;
    text(object, key, digits);
    if (!unhex(digits, out)) fail(key, "has not the right number of hex digits");
  }
  [[gnu::noinline]] void hash(json_view object, const char* key, std::uint64_t& out) {
    std::array<std::uint8_t, 8> big_endian{};
    bytes(object, key, big_endian);
    out = 0;
    for (const std::uint8_t byte : big_endian) out = out << 8 | byte;
  }
  [[nodiscard, gnu::noinline]] json_items array(json_view object, const char* key) {
    const json_view value = at(object, key);
    if (value.is('[')) return json_items(value);
    fail(key, "is no array");
    return json_items({});
  }

 private:
  [[gnu::noinline]] void fail(const char* key, const char* why) {
    if (wrong_.empty()) wrong_ = std::string("\"") + key + "\" " + why;
  }
  std::string& wrong_;
};

inline void read(json_reader& in, json_view from, codec_choice& codec) {
  in.number(from, "id", codec.id);
  in.number(from, "bits", codec.bits);
}

inline void read_element(json_reader& in, json_view from, element_type& element, std::uint8_t& bytes) {
  const json_view described = in.at(from, "element");
  std::uint8_t code = 0;
  in.number(described, "code", code);
  in.number(described, "bytes", bytes);
  element = element_type(code);
}

inline void read(json_reader& in, json_view from, column_schema& column) {
  read(in, in.at(from, "codec"), column.codec);
  in.text(from, "name", column.name);
  read_element(in, from, column.shape.element, column.shape.element_bytes);
  in.number(from, "width", column.shape.width);
}

template <class T>
void read_list(json_reader& in, json_view from, const char* key, std::vector<T>& out) {
  json_view key_of_none, item;
  for (json_items items = in.array(from, key); items.next(key_of_none, item);)
    read(in, item, out.emplace_back());
}

inline void read(json_reader& in, json_view from, table_schema& table) {
  in.text(from, "name", table.name);
  in.number(from, "rows", table.rows);
  in.text(from, "id_space", table.id_space);
  read(in, in.at(from, "codec"), table.codec);
  read_list(in, from, "columns", table.columns);
}

inline void read(json_reader& in, json_view from, owned_rows& owned) {
  in.number(from, "table", owned.table);
  const json_view rows = in.at(from, "rows"), columns = in.at(from, "columns");
  in.number(rows, "first", owned.first);
  in.number(rows, "stride", owned.stride);
  in.number(rows, "count", owned.count);
  in.number(columns, "first", owned.first_column);
  in.number(columns, "count", owned.columns);
}

inline void read(json_reader& in, json_view from, part_schema& part) {
  in.number(from, "part", part.part);
  read_list(in, from, "tables", part.tables);
}

inline void read(json_reader& in, json_view from, column_error& error) {
  in.number(from, "table", error.table);
  in.number(from, "column", error.column);
  in.number(from, "rows", error.rows);
  in.number(from, "every", error.every);
  in.real(from, "mean", error.mean);
  in.real(from, "largest", error.largest);
  in.number(from, "worst_row", error.worst_row);
}

inline void read(json_reader& in, json_view from, segment_entry& segment) {
  in.text(from, "name", segment.name);
  in.number(from, "part", segment.part);
  in.number(from, "sequence", segment.sequence);
  in.bytes(from, "attempt", segment.attempt);
  in.number(from, "bytes", segment.bytes);
  in.hash(from, "footer_hash", segment.footer_hash);
  in.number(from, "rows", segment.rows);
  in.flag(from, "full", segment.full);
  read_list(in, from, "errors", segment.errors);
}

inline void read(json_reader& in, json_view from, codec_schema& codec) {
  read(in, from, codec.codec);
  in.text(from, "name", codec.name);
  in.number(from, "version", codec.version);
}

inline void read(json_reader& in, json_view from, dense_schema& dense) {
  in.text(from, "name", dense.name);
  read_element(in, from, dense.element, dense.element_bytes);
  in.number(from, "count", dense.count);
}

inline void read(json_reader& in, json_view from, state_schema& state) {
  in.text(from, "name", state.name);
  in.number(from, "bytes", state.bytes);
}

inline void read(json_reader& in, json_view from, std::pair<std::string, std::string>& pair) {
  in.text(from, "key", pair.first);
  in.text(from, "value", pair.second);
}

}  // namespace detail

}  // namespace checkrow::inline v0::format
