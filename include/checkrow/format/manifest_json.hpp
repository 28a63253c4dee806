// The manifest's blob: one line of JSON that ends in its own checksum.
#pragma once

#include <checkrow/error.hpp>
#include <checkrow/format/hash.hpp>
#include <checkrow/format/json_fields.hpp>

namespace checkrow::inline v0::format {

namespace detail {

/// The last member, `,"checksum":"<16 hex digits>"}` and a newline, is the hash of every byte before it.
inline constexpr std::string_view checksum_key = ",\"checksum\":\"";
inline constexpr std::string_view checksum_end = "\"}\n";
inline constexpr std::size_t checksum_bytes = checksum_key.size() + 16 + checksum_end.size();

[[nodiscard]] inline std::string checksum_of(std::string_view text) {
  return std::string(checksum_key) + hex(hash(std::as_bytes(std::span(text)))) + std::string(checksum_end);
}

[[nodiscard]] inline error corrupt_manifest(const std::string& name, std::string what) {
  return checkrow::detail::make_error(error_kind::corrupt, {what}, {name},
                                      {"restore falls back to the checkpoint before it"});
}

}  // namespace detail

/// The manifest's blob: one line of JSON, members in order of name, the checksum last.
[[nodiscard]] inline std::string write_manifest(const manifest& of) {
  detail::json out;
  detail::put(out, "format", "checkrow");
  detail::put(out, "version", version);
  detail::put_flag(out, "provisional", provisional);
  detail::put_array(out, "compatible_features");
  detail::put_array(out, "incompatible_features");
  detail::put(out, "sequence", of.sequence);
  detail::put(out, "parent", of.parent);
  detail::put(out, "attempt", hex(of.attempt));
  detail::put(out, "step", of.step);
  detail::put(out, "created", of.created);
  detail::put_flag(out, "full", of.full);
  detail::put(out, "strategy", of.strategy);
  detail::json& history = detail::put_object(out, "history");
  detail::put(history, "deltas", of.deltas);
  detail::put_real(history, "share_sum", of.share_sum);
  detail::put_real(history, "last_share", of.last_share);
  detail::put(out, "restores", of.restores);
  detail::write_list(out, "tables", of.tables);
  detail::write_list(out, "dense", of.dense);
  detail::write_list(out, "states", of.states);
  detail::write_list(out, "codecs", of.codecs);
  detail::write_list(out, "parts", of.parts);
  detail::write_list(out, "segments", of.segments);
  detail::write_list(out, "user", of.user);
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
  for (const detail::json& feature : reader.array(in, "incompatible_features"))
    features.push_back(feature.is_string() ? feature.get_ref<const std::string&>() : feature.dump());
  if (wrong.empty() && format_name != "checkrow") wrong = "\"format\" is not \"checkrow\"";
  if (!wrong.empty()) return detail::corrupt_manifest(name, wrong);
  if (format_version != version)
    return error{
        error_kind::unsupported, "the checkpoint has format version " + std::to_string(format_version), name,
        "read it with a checkrow that knows that version; this one knows " + std::to_string(version)};
  if (!features.empty())
    return checkrow::detail::make_error(error_kind::unsupported,
                                        {"the checkpoint needs the feature \"", features.front(), "\""},
                                        {name}, {"read it with a checkrow that knows that feature"});

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
  detail::read_list(reader, in, "tables", out.tables);
  detail::read_list(reader, in, "dense", out.dense);
  detail::read_list(reader, in, "states", out.states);
  detail::read_list(reader, in, "codecs", out.codecs);
  detail::read_list(reader, in, "parts", out.parts);
  detail::read_list(reader, in, "segments", out.segments);
  detail::read_list(reader, in, "user", out.user);
  if (!wrong.empty()) return detail::corrupt_manifest(name, wrong);
  for (const table_schema& table : out.tables)
    if (table.id_space != "ordinal")
      return checkrow::detail::make_error(
          error_kind::unsupported, {"table ", table.name, " has ids of the space \"", table.id_space, "\""},
          {name}, {"read it with a checkrow that knows that space"});
  return out;
}

}  // namespace checkrow::inline v0::format
