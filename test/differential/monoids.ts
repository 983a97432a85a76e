/** Monoids that generated programs reduce with. */
import type { Monoid } from './model.ts'

export const MONOIDS: readonly Monoid[] = [
  {
    name: 'toggle',
    text: 'monoid toggle(x: i32) {\n  identity 0\n  combine (a, b) = bit_xor(a.x, b.x)\n}',
    types: ['i32'],
    identity: [0],
    combine: ([a], [b]) => [a! ^ b!],
  },
  {
    name: 'span',
    text: 'monoid span(low: i32, high: i32) {\n  identity (2147483647, -2147483648)\n  combine (a, b) = (min(a.low, b.low), max(a.high, b.high))\n}',
    types: ['i32', 'i32'],
    identity: [2147483647, -2147483648],
    combine: ([a, x], [b, y]) => [Math.min(a!, b!), Math.max(x!, y!)],
  },
  {
    name: 'best',
    text: [
      'monoid best(value: i32, at: i32) {',
      '  identity (-2147483648, 2147483647)',
      '  combine (a, b) = (max(a.value, b.value),',
      '    select(a.value > b.value, a.at, select(b.value > a.value, b.at, min(a.at, b.at))))',
      '}',
    ].join('\n'),
    types: ['i32', 'i32'],
    identity: [-2147483648, 2147483647],
    combine: ([a, i], [b, j]) => [Math.max(a!, b!), a! > b! ? i! : b! > a! ? j! : Math.min(i!, j!)],
  },
  {
    name: 'two_largest',
    text: 'monoid two_largest(first: f32, second: f32) {\n  identity (-inf, -inf)\n  combine (a, b) = (max(a.first, b.first), max(min(a.first, b.first), max(a.second, b.second)))\n}',
    types: ['f32', 'f32'],
    identity: [-Infinity, -Infinity],
    combine: ([a, x], [b, y]) => [Math.max(a!, b!), Math.max(Math.min(a!, b!), Math.max(x!, y!))],
  },
]
