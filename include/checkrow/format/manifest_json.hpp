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
  detail::json_writer out;
  out.open(nullptr, '{');
  out.put("attempt", hex(of.attempt));
  detail::write_list(out, "codecs", of.codecs);
  out.put_literal("compatible_features", "[]");
  out.put("created", of.created);
  detail::write_list(out, "dense", of.dense);
  out.put("format", "checkrow");
  out.put_flag("full", of.full);
  out.open("history", '{');
  out.put("deltas", of.deltas);
  out.put_real("last_share", of.last_share);
  out.put_real("share_sum", of.share_sum);
  out.close('}');
  out.put_literal("incompatible_features", "[]");
  out.put("parent", of.parent);
  detail::write_list(out, "parts", of.parts);
  out.put_flag("provisional", provisional);
  out.put("restores", of.restores);
  detail::write_list(out, "segments", of.segments);
  out.put("sequence", of.sequence);
  detail::write_list(out, "states", of.states);
  out.put("step", of.step);
  out.put("strategy", of.strategy);
  detail::write_list(out, "tables", of.tables);
  detail::write_list(out, "user", of.user);
  out.put("version", version);
  return out.text() + detail::checksum_of(out.text());  // the closing brace is the checksum's
}

/// Reads a manifest from untrusted bytes. `name` is the blob's, for messages. Corrupt: not what was written;
/// unsupported: whole, but of another version or with a feature that this version does not know, by name.
[[nodiscard]] inline result<manifest> read_manifest(std::string_view text, const std::string& name) {
  if (text.size() <= detail::checksum_bytes)
    return detail::corrupt_manifest(name, "the manifest is too short");
  const std::string_view body = text.substr(0, text.size() - detail::checksum_bytes);
  if (text.substr(body.size()) != detail::checksum_of(body))
    return detail::corrupt_manifest(name, "the manifest's checksum does not match");
  const std::string whole = std::string(body) + "}";
  const detail::json_view in{whole};
  if (!in.is('{') || !detail::is_json(whole))
    return detail::corrupt_manifest(name, "the manifest is no JSON object");

  std::string wrong;
  detail::json_reader reader(wrong);
  std::string format_name;
  std::uint32_t format_version = 0;
  std::vector<std::string> features;
  reader.text(in, "format", format_name);
  reader.number(in, "version", format_version);
  detail::json_view key_of_none, feature;
  for (auto items = reader.array(in, "incompatible_features"); items.next(key_of_none, feature);)
    if (!feature.get(features.emplace_back())) features.back() = feature.text;
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
  const detail::json_view history = reader.at(in, "history");
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
  if (out.parts.size() > 1)
    return checkrow::detail::make_error(error_kind::unsupported, {"the checkpoint has several parts"}, {name},
                                        {"read it with a checkrow that knows how to put them together"});
  return out;
}

}  // namespace checkrow::inline v0::format
