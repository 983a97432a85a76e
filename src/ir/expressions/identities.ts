/** Identities of integers and truth values, which the constructors of expressions apply. Arithmetic of integers may wrap. */
import { isValue } from '../values/numeric.ts'
import type { Rule } from './patterns.ts'

interface Identity extends Rule {
  /** The rule also holds for floats if zeros are structural: a zero has no sign, and its factor is finite. */
  readonly structural?: true
}

export const IDENTITIES: readonly Identity[] = [
  { name: 'plus zero', match: ['add', 'x', 0], commutes: true, to: 'x', structural: true },
  { name: 'plus a difference', match: ['add', 'x', ['sub', 'y', 'x']], commutes: true, to: 'y' },
  {
    // Neighbouring elements then share the variable part of their addresses.
    name: 'constants last',
    match: ['add', 'x', ['add', 'y', 'c']],
    when: ({ x }) => x!.kind !== 'const',
    to: ['add', ['add', 'x', 'y'], 'c'],
  },
  {
    name: 'sum of constants',
    match: ['add', ['add', 'x', 'c'], 'd'],
    when: ({ c, d }, _, e) => isValue(c.value + d.value, e.dtype),
    to: ['add', 'x', ['add', 'c', 'd']],
  },
  { name: 'minus zero', match: ['sub', 'x', 0], to: 'x', structural: true },
  { name: 'minus itself', match: ['sub', 'x', 'x'], to: 0 },
  { name: 'sum minus its first', match: ['sub', ['add', 'x', 'y'], 'x'], to: 'y' },
  { name: 'sum minus its last', match: ['sub', ['add', 'x', 'y'], 'y'], to: 'x' },
  { name: 'times one', match: ['mul', 'x', 1], commutes: true, to: 'x' },
  { name: 'times zero', match: ['mul', 'x', 0], commutes: true, to: 0, structural: true },
  { name: 'divided by one', match: ['div', 'x', 1], to: 'x' },
  { name: 'zero divided', match: ['div', 0, 'x'], to: 0 },
  { name: 'modulo one', match: ['mod', 'x', 1], to: 0 },
  { name: 'less than itself', match: ['lt', 'x', 'x'], to: 0 },
  { name: 'at most itself', match: ['le', 'x', 'x'], to: 1 },
  { name: 'greater than itself', match: ['gt', 'x', 'x'], to: 0 },
  { name: 'at least itself', match: ['ge', 'x', 'x'], to: 1 },
  { name: 'equal to itself', match: ['eq', 'x', 'x'], to: 1 },
  { name: 'different from itself', match: ['ne', 'x', 'x'], to: 0 },
  { name: 'different from false', match: ['ne', 'x', 0], when: ({ x }) => x!.dtype === 'bool', to: 'x' },
  { name: 'choice of one', match: ['ne', ['select', 'x', 1, 0], 0], to: 'x' },
  { name: 'choice of zero', match: ['eq', ['select', 'x', 1, 0], 0], to: ['not', 'x'] },
  { name: 'different and less', match: ['and', ['ne', 'x', 'c'], ['lt', 'x', 'c']], to: ['lt', 'x', 'c'] },
  { name: 'and true', match: ['and', 'x', 1], commutes: true, to: 'x' },
  { name: 'and false', match: ['and', 'x', 0], commutes: true, to: 0 },
  { name: 'or false', match: ['or', 'x', 0], commutes: true, to: 'x' },
  { name: 'or true', match: ['or', 'x', 1], commutes: true, to: 1 },
  { name: 'negated twice', match: ['neg', ['neg', 'x']], to: 'x' },
  { name: 'not twice', match: ['not', ['not', 'x']], to: 'x' },
  { name: 'either way', match: ['select', 'x', 'y', 'y'], to: 'y' },
]
