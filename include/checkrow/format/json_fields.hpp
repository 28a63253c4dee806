// The parts of a manifest as JSON, one function to write and one to read each. The only header that includes
// nlohmann/json.
#pragma once

#include <checkrow/format/bytes.hpp>
#include <checkrow/format/manifest.hpp>
#include <nlohmann/json.hpp>

namespace checkrow::inline v0::format {

namespace detail {

using json = nlohmann::json;

// ----------------------------------------------------------------------------------------------------
// writing Small functions that are not inlined: JSON's temporaries would make up half of a program's compile
// time.

[[gnu::noinline]] inline void put(json& object, const char* key, std::uint64_t value) { object[key] = value; }
[[gnu::noinline]] inline void put(json& object, const char* key, const std::string& value) {
  object[key] = value;
}
[[gnu::noinline]] inline void put_real(json& object, const char* key, double value) { object[key] = value; }
[[gnu::noinline]] inline void put_flag(json& object, const char* key, bool value) { object[key] = value; }
[[gnu::noinline]] inline json& put_array(json& object, const char* key) {
  return object[key] = json::array();
}
[[gnu::noinline]] inline json& put_object(json& object, const char* key) {
  return object[key] = json::object();
}
[[gnu::noinline]] inline json& add_object(json& array) {
  array.push_back(json::object());
  return array.back();
}

inline void write(json& out, codec_choice codec) {
  put(out, "id", codec.id);
  put(out, "bits", codec.bits);
}

inline void write_element(json& out, element_type element, std::uint8_t bytes) {
  json& described = put_object(out, "element");
  put(described, "code", std::uint8_t(element));
  put(described, "name", to_string(element));
  put(described, "bytes", bytes);
}

inline void write(json& out, const table_schema& table) {
  put(out, "name", table.name);
  put(out, "rows", table.rows);
  put(out, "id_space", table.id_space);
  out["initializer"] = nullptr;
  write(put_object(out, "codec"), table.codec);
  json& columns = put_array(out, "columns");
  for (const column_schema& column : table.columns) {
    json& described = add_object(columns);
    put(described, "name", column.name);
    write_element(described, column.shape.element, column.shape.element_bytes);
    put(described, "width", column.shape.width);
  }
}

inline void write(json& out, const part_schema& part) {
  put(out, "part", part.part);
  json& tables = put_array(out, "tables");
  for (const owned_rows& owned : part.tables) {
    json& described = add_object(tables);
    put(described, "table", owned.table);
    json& rows = put_object(described, "rows");
    put(rows, "first", owned.first);
    put(rows, "stride", owned.stride);
    put(rows, "count", owned.count);
    json& columns = put_object(described, "columns");
    put(columns, "first", owned.first_column);
    put(columns, "count", owned.columns);
  }
}

template <class T>
void write_list(json& out, const char* key, const std::vector<T>& items);

inline void write(json& out, const column_error& error) {
  put(out, "table", error.table);
  put(out, "column", error.column);
  put(out, "rows", error.rows);
  put(out, "every", error.every);
  put_real(out, "mean", error.mean);
  put_real(out, "largest", error.largest);
  put(out, "worst_row", error.worst_row);
}

inline void write(json& out, const segment_entry& segment) {
  put(out, "name", segment.name);
  put(out, "part", segment.part);
  put(out, "sequence", segment.sequence);
  put(out, "attempt", hex(segment.attempt));
  put(out, "bytes", segment.bytes);
  put(out, "footer_hash", hex(segment.footer_hash));
  put(out, "rows", segment.rows);
  put_flag(out, "full", segment.full);
  write_list(out, "errors", segment.errors);
}

inline void write(json& out, const codec_schema& codec) {
  write(out, codec.codec);
  put(out, "name", codec.name);
  put(out, "version", codec.version);
}

inline void write(json& out, const dense_schema& dense) {
  put(out, "name", dense.name);
  write_element(out, dense.element, dense.element_bytes);
  put(out, "count", dense.count);
}

inline void write(json& out, const state_schema& state) {
  put(out, "name", state.name);
  put(out, "bytes", state.bytes);
}

inline void write(json& out, const std::pair<std::string, std::string>& pair) {
  put(out, "key", pair.first);
  put(out, "value", pair.second);
}

template <class T>
void write_list(json& out, const char* key, const std::vector<T>& items) {
  json& array = put_array(out, key);
  for (const T& item : items) write(add_object(array), item);
}

// ----------------------------------------------------------------------------------------------------
// reading

/// Reads values out of JSON that anybody may have written: every type and presence is checked before the get,
/// and the first thing that does not fit is remembered.
class json_reader {
 public:
  explicit json_reader(std::string& wrong) : wrong_(wrong) {}

  [[nodiscard, gnu::noinline]] const json& at(const json& object, const char* key) {
    static const json none;
    if (object.is_object())
      if (const auto found = object.find(key); found != object.end()) return *found;
    fail(key, "is missing");
    return none;
  }
  [[nodiscard, gnu::noinline]] std::uint64_t integer(const json& object, const char* key,
                                                     std::uint64_t most) {
    const json& value = at(object, key);
    const auto* const found = value.get_ptr<const json::number_unsigned_t*>();
    if (found != nullptr && *found <= most) return *found;
    fail(key, "is no unsigned integer of its range");
    return 0;
  }
  template <class T>
  void number(const json& object, const char* key, T& out) {
    out = T(integer(object, key, std::uint64_t(T(~T{}))));
  }
  [[gnu::noinline]] void real(const json& object, const char* key, double& out) {
    const json& value = at(object, key);
    if (value.is_number())
      out = value.get<double>();
    else
      fail(key, "is no number");
  }
  [[gnu::noinline]] void flag(const json& object, const char* key, bool& out) {
    const json& value = at(object, key);
    if (const auto* const found = value.get_ptr<const json::boolean_t*>())
      out = *found;
    else
      fail(key, "is neither true nor false");
  }
  [[gnu::noinline]] void text(const json& object, const char* key, std::string& out) {
    const json& value = at(object, key);
    if (const auto* const found = value.get_ptr<const json::string_t*>())
      out = *found;
    else
      fail(key, "is no string");
  }
  [[gnu::noinline]] void bytes(const json& object, const char* key, std::span<std::uint8_t> out) {
    std::string digits;
    text(object, key, digits);
    if (!unhex(digits, out)) fail(key, "has not the right number of hex digits");
  }
  [[gnu::noinline]] void hash(const json& object, const char* key, std::uint64_t& out) {
    std::array<std::uint8_t, 8> big_endian{};
    bytes(object, key, big_endian);
    out = 0;
    for (const std::uint8_t byte : big_endian) out = out << 8 | byte;
  }
  [[nodiscard, gnu::noinline]] const json::array_t& array(const json& object, const char* key) {
    static const json::array_t none;
    const json& value = at(object, key);
    if (const auto* const found = value.get_ptr<const json::array_t*>()) return *found;
    fail(key, "is no array");
    return none;
  }

 private:
  [[gnu::noinline]] void fail(const char* key, const char* why) {
    if (wrong_.empty()) wrong_ = std::string("\"") + key + "\" " + why;
  }
  std::string& wrong_;
};

inline void read(json_reader& in, const json& from, codec_choice& codec) {
  in.number(from, "id", codec.id);
  in.number(from, "bits", codec.bits);
}

inline void read_element(json_reader& in, const json& from, element_type& element, std::uint8_t& bytes) {
  const json& described = in.at(from, "element");
  std::uint8_t code = 0;
  in.number(described, "code", code);
  in.number(described, "bytes", bytes);
  element = element_type(code);
}

inline void read(json_reader& in, const json& from, column_schema& column) {
  in.text(from, "name", column.name);
  read_element(in, from, column.shape.element, column.shape.element_bytes);
  in.number(from, "width", column.shape.width);
}

template <class T>
void read_list(json_reader& in, const json& from, const char* key, std::vector<T>& out) {
  for (const json& item : in.array(from, key)) read(in, item, out.emplace_back());
}

inline void read(json_reader& in, const json& from, table_schema& table) {
  in.text(from, "name", table.name);
  in.number(from, "rows", table.rows);
  in.text(from, "id_space", table.id_space);
  read(in, in.at(from, "codec"), table.codec);
  read_list(in, from, "columns", table.columns);
}

inline void read(json_reader& in, const json& from, owned_rows& owned) {
  in.number(from, "table", owned.table);
  const json &rows = in.at(from, "rows"), &columns = in.at(from, "columns");
  in.number(rows, "first", owned.first);
  in.number(rows, "stride", owned.stride);
  in.number(rows, "count", owned.count);
  in.number(columns, "first", owned.first_column);
  in.number(columns, "count", owned.columns);
}

inline void read(json_reader& in, const json& from, part_schema& part) {
  in.number(from, "part", part.part);
  read_list(in, from, "tables", part.tables);
}

inline void read(json_reader& in, const json& from, column_error& error) {
  in.number(from, "table", error.table);
  in.number(from, "column", error.column);
  in.number(from, "rows", error.rows);
  in.number(from, "every", error.every);
  in.real(from, "mean", error.mean);
  in.real(from, "largest", error.largest);
  in.number(from, "worst_row", error.worst_row);
}

inline void read(json_reader& in, const json& from, segment_entry& segment) {
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

inline void read(json_reader& in, const json& from, codec_schema& codec) {
  read(in, from, codec.codec);
  in.text(from, "name", codec.name);
  in.number(from, "version", codec.version);
}

inline void read(json_reader& in, const json& from, dense_schema& dense) {
  in.text(from, "name", dense.name);
  read_element(in, from, dense.element, dense.element_bytes);
  in.number(from, "count", dense.count);
}

inline void read(json_reader& in, const json& from, state_schema& state) {
  in.text(from, "name", state.name);
  in.number(from, "bytes", state.bytes);
}

inline void read(json_reader& in, const json& from, std::pair<std::string, std::string>& pair) {
  in.text(from, "key", pair.first);
  in.text(from, "value", pair.second);
}

}  // namespace detail

}  // namespace checkrow::inline v0::format
