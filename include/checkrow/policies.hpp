// policies<...>: one policy of each kind, out of any order.
#pragma once

#include <checkrow/concepts.hpp>

namespace checkrow::inline v0 {

template <row_codec... Codecs>
class codec_set;
struct exact;
struct bitmap;
struct intermittent;
struct copy_on_touch;
struct stop_and_copy;

/// No due policy was given: the trainer decides by itself when to save.
struct never_due {};

namespace detail {

enum class policy_kind : std::uint8_t { none, codec, tracker, strategy, sink, due, capture, setting };

template <class P>
inline constexpr bool is_codec_set = false;
template <class... Codecs>
inline constexpr bool is_codec_set<codec_set<Codecs...>> = true;

template <class P>
concept claims_codec = requires {
  P::id;
}
|| requires(const P& p, column_shape s) { p.accepts(s); };
template <class P>
concept claims_tracker = requires {
  typename P::table_rows;
};
template <class P>
concept claims_strategy = requires {
  P::cursors;
}
|| requires(const P& p, const history& h, const boundary& b) { p.plan(h, b); };
template <class P>
concept claims_sink = requires {
  typename P::writer;
}
|| requires { typename P::reader; };
template <class P>
concept claims_due = requires {
  typename P::timer;
};
template <class P>
concept claims_setting = requires {
  typename P::setting_tag;
};

template <class P>
[[nodiscard]] consteval policy_kind kind_of() {
  if constexpr (is_codec_set<P>)
    return policy_kind::codec;
  else if constexpr (claims_codec<P>) {
    static_assert(row_codec<P>,
                  "checkrow: this codec lacks something that row_codec asks for; see concepts.hpp");
    return policy_kind::codec;
  } else if constexpr (claims_tracker<P>) {
    static_assert(row_tracker<P>,
                  "checkrow: this tracker lacks something that row_tracker asks for; see concepts.hpp");
    return policy_kind::tracker;
  } else if constexpr (claims_strategy<P>) {
    static_assert(strategy<P>,
                  "checkrow: this strategy lacks something that strategy asks for; see concepts.hpp");
    return policy_kind::strategy;
  } else if constexpr (claims_sink<P>) {
    static_assert(sink<P>, "checkrow: this sink lacks something that sink asks for; see concepts.hpp");
    return policy_kind::sink;
  } else if constexpr (claims_due<P>) {
    static_assert(due_policy<P>,
                  "checkrow: this due policy lacks something that due_policy asks for; see concepts.hpp");
    return policy_kind::due;
  } else if constexpr (capture_method<P>)
    return policy_kind::capture;
  else if constexpr (claims_setting<P>)
    return policy_kind::setting;
  else
    return policy_kind::none;
}

/// The one policy of a kind among Ps, or the default.
template <policy_kind Kind, class Default, class... Ps>
struct pick {
  using type = Default;
};
template <policy_kind Kind, class Default, class P, class... Ps>
struct pick<Kind, Default, P, Ps...>
    : std::conditional_t<kind_of<P>() == Kind, std::type_identity<P>, pick<Kind, Default, Ps...>> {};

template <class P>
struct as_codec_set {
  using type = codec_set<P>;
};
template <class... Codecs>
struct as_codec_set<codec_set<Codecs...>> {
  using type = codec_set<Codecs...>;
};

template <policy_kind Kind, class... Ps>
inline constexpr std::size_t how_many = (std::size_t{0} + ... + (kind_of<Ps>() == Kind ? 1 : 0));

struct no_sink;

template <class Tracker>
struct default_capture {
  using type = stop_and_copy;
};
template <class Tracker>
requires block_tracker<typename Tracker::table_rows>
struct default_capture<Tracker> {
  using type = copy_on_touch;
};

}  // namespace detail

/// A set of policies, in any order, each kind at most once; all but the sink have a default: exact codec,
/// bitmap tracker, intermittent strategy, no due policy, and copy_on_touch capture (stop_and_copy where the
/// tracker is no block_tracker).
template <class... Ps>
struct policies {
  using kind = detail::policy_kind;
  template <kind Kind>
  static constexpr std::size_t count = detail::how_many<Kind, Ps...>;
  static_assert(
      ((detail::kind_of<Ps>() != kind::none) && ...),
      "checkrow: policies<...> was given a type that is no policy: a codec has id and encode(), a tracker "
      "has table_rows, a strategy has plan(), a sink has writer and reader; see concepts.hpp");
  static_assert(count<kind::sink> >= 1,
                "checkrow: a checkpointer needs a sink: pass directory{\"path\"}, memory{} or your own");
  static_assert(count<kind::sink> <= 1, "checkrow: two sinks were given");
  static_assert(count<kind::codec> <= 1,
                "checkrow: two codecs were given; use codec_set<...> to choose one per table at run time");
  static_assert(count<kind::tracker> <= 1, "checkrow: two trackers were given");
  static_assert(count<kind::strategy> <= 1, "checkrow: two strategies were given");
  static_assert(count<kind::due> <= 1, "checkrow: two due policies were given");
  static_assert(count<kind::capture> <= 1, "checkrow: two captures were given");

  using codecs = typename detail::as_codec_set<typename detail::pick<kind::codec, exact, Ps...>::type>::type;
  using tracker = typename detail::pick<kind::tracker, bitmap, Ps...>::type;
  using strategy = typename detail::pick<kind::strategy, intermittent, Ps...>::type;
  using sink = typename detail::pick<kind::sink, detail::no_sink, Ps...>::type;
  using due = typename detail::pick<kind::due, never_due, Ps...>::type;
  using capture =
      typename detail::pick<kind::capture, typename detail::default_capture<tracker>::type, Ps...>::type;
};

}  // namespace checkrow::inline v0
