/** Random integer expressions whose values are at the limits of their types. Names: iterator `i`; arrays `b` (i32), `c` (i8), `u` (u32). */
import type { Choices } from './choices.ts'

export const I32 = [3, 0, 1, -1, 2, 2 ** 31 - 1, -(2 ** 31), -(2 ** 31) + 1, 2 ** 30, 65_536]
export const U32 = [3, 0, 1, 2, 2 ** 32 - 1, 4e9, 2 ** 31, 2 ** 31 - 1, 2 ** 31 + 1, 65_536]
export const I8 = [3, 0, 1, -1, -128, 127]

const literal = (x: number): string => (x === -(2 ** 31) ? '(-2147483647 - 1)' : x < 0 ? `(${x})` : `${x}`)

/** An expression of type i32. */
export function signed(c: Choices, depth: number): string {
  const e = (): string => signed(c, depth - 1)
  const constant = (from: readonly number[]): string => literal(c.pick(from))
  if (depth === 0) return c.pick(['b[i]', 'i32(c[i])', 'i', 'i32(u[i])', `i32(${constant(I32)})`])
  return c.pick([
    e,
    () => `i32(${unsigned(c, depth - 1)})`,
    () => `i32(i8(${e()}))`,
    () => `i32(u8(${e()}))`,
    () => `min(${e()}, ${c.chance(50) ? '3' : e()})`,
    () => `max(${e()}, ${c.chance(50) ? '0' : e()})`,
    () => `abs(${e()})`,
    () => `(-${e()})`,
    () => `sign(${e()})`,
    () => `(${e()} ${c.pick(['+', '-', '*'])} ${c.chance(50) ? constant(I32) : e()})`,
    () => `(${e()} ${c.pick(['/', '%'])} ${constant(I32.filter((x) => x !== 0))})`,
    () => `(${c.chance(50) ? constant(I32) : e()} ${c.pick(['/', '%'])} (${e()} + b[i]))`,
    () => `ceildiv(${e()}, ${c.chance(50) ? constant(I32.filter((x) => x !== 0)) : `(${e()} + b[i])`})`,
    () => `select(i32(${e()}) ${c.pick(['<', '>=', '=='])} i32(${e()}), ${e()}, ${e()})`,
    () => `shift_${c.pick(['left', 'right'])}(${e()}, ${c.pick(['1', '31', 'b[i]'])})`,
    () => `bit_xor(${e()}, ${e()})`,
    () => `popcount(${e()})`,
  ])()
}

/** An expression of type u32. */
function unsigned(c: Choices, depth: number): string {
  const e = (): string => unsigned(c, depth - 1)
  const constant = (from: readonly number[]): string => `u32(${c.pick(from)})`
  if (depth === 0) return c.chance(70) ? 'u[i]' : constant(U32)
  return c.pick([
    e,
    () => `u32(${signed(c, depth - 1)})`,
    () => `${c.pick(['min', 'max'])}(${e()}, ${constant(U32)})`,
    () => `(${e()} ${c.pick(['+', '-', '*'])} ${e()})`,
    () => `(${e()} ${c.pick(['/', '%'])} ${constant(U32.filter((x) => x !== 0))})`,
    () => `ceildiv(${e()}, ${constant(U32.filter((x) => x !== 0))})`,
    () => `select(${e()} ${c.pick(['<', '>='])} ${e()}, ${e()}, ${constant(U32)})`,
  ])()
}
