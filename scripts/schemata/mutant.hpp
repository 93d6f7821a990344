// Many mutants in one program: each place asks whether it is the one that is at work (scripts/mutants --all).
#pragma once

#include <algorithm>
#include <initializer_list>
#include <utility>

namespace mutant {

/// What a run learns of a place: it was reached; it cannot be changed (the other operator is not defined for these types).
inline constexpr unsigned char kReached = 1, kImpossible = 2;

/// One byte for each place, shared with children of a fork.
unsigned char* places();
/// The place at work (MUTANT_PLACE); 0: none.
int at_work();

inline bool is_at_work(int place) {
  places()[place] |= kReached;
  return place == at_work();
}
inline int one_more(int place) { return is_at_work(place) ? 1 : 0; }
inline bool flipped(int place, bool value) { return is_at_work(place) != value; }
/// `unless(place) == !x` is !x, or x.
inline bool unless(int place) { return !is_at_work(place); }

/// `a < Less{place} < b` is `a < b`, or the same with the other operator: a is held until b is known.
#define MUTANT_OPERATOR(Name, operation, other)                                                     \
  struct Name {                                                                                     \
    int place;                                                                                      \
  };                                                                                                \
  template <class A>                                                                                \
  struct Name##Held {                                                                               \
    A&& a;                                                                                          \
    int place;                                                                                      \
  };                                                                                                \
  template <class A>                                                                                \
  Name##Held<A> operator operation(A&& a, Name name) {                                              \
    return {std::forward<A>(a), name.place};                                                        \
  }                                                                                                 \
  template <class A, class B>                                                                       \
  auto operator operation(Name##Held<A> held, B&& b) -> decltype(std::forward<A>(held.a) operation std::forward<B>(b)) { \
    using Result = decltype(std::forward<A>(held.a) operation std::forward<B>(b));                  \
    if constexpr (requires { static_cast<Result>(std::forward<A>(held.a) other std::forward<B>(b)); }) { \
      if (is_at_work(held.place)) return static_cast<Result>(std::forward<A>(held.a) other std::forward<B>(b)); \
    } else {                                                                                        \
      places()[held.place] |= kImpossible;                                                          \
    }                                                                                               \
    return std::forward<A>(held.a) operation std::forward<B>(b);                                    \
  }
MUTANT_OPERATOR(Less, <, <=)
MUTANT_OPERATOR(LessEqual, <=, <)
MUTANT_OPERATOR(Greater, >, >=)
MUTANT_OPERATOR(GreaterEqual, >=, >)
MUTANT_OPERATOR(Equal, ==, !=)
MUTANT_OPERATOR(NotEqual, !=, ==)
MUTANT_OPERATOR(Plus, +, -)
MUTANT_OPERATOR(Minus, -, +)
MUTANT_OPERATOR(Times, *, /)
MUTANT_OPERATOR(Divide, /, *)

/// std::min and std::max, or each other.
template <int place>
struct Extreme {
  template <class T>
  static T min(const T& a, const T& b) {
    return is_at_work(place) ? std::max(a, b) : std::min(a, b);
  }
  template <class T>
  static T max(const T& a, const T& b) {
    return is_at_work(place) ? std::min(a, b) : std::max(a, b);
  }
  template <class T>
  static T min(std::initializer_list<T> list) {
    return is_at_work(place) ? std::max(list) : std::min(list);
  }
  template <class T>
  static T max(std::initializer_list<T> list) {
    return is_at_work(place) ? std::min(list) : std::max(list);
  }
};

}  // namespace mutant
