/** Neighbouring elements as one access, in the text of a target that has them. */
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/program.ts'

const textOf = (buffers: string, statement: string): string =>
  parseProgram(`kernel k(d: size, n: size) {
  axis i = dense_fixed(4 * d)
  axis j = dense_fixed(n)
  axis e = dense_fixed(8)
  ${buffers}
  buffer y: f32[i] out
  iterate s [i] as S { y[i] = ${statement} }
}
schedule k.fours {
  split i by 4 -> (io, iv)
  unroll iv
}`)
    .kernel()
    .schedule('fours')
    .emit('cuda')[0]!.text

test('loads begin where a vector does', () => {
  const text = textOf('buffer x: f32[i, e] in', 'x[i, 1] + x[i, 2] + x[i, 3] + x[i, 4]')
  expect(text).not.toContain('*(const float4*)(x')
  expect(text.match(/\*\(const float2\*\)\(x \+ .* \+ 2\)/g)).toHaveLength(4)
})

test('what is stored may be loaded from elsewhere, one by one', () => {
  const text = textOf('buffer t: i32[i] in\n  buffer x: f32[j] in', 'x[t[i]]')
  expect(text).toContain('*(const int4*)(t')
  expect(text).toContain('*(float4*)__builtin_assume_aligned(y')
})

test('what a choice reads before the vector is loaded, it reads itself', () => {
  const program = parseProgram(`kernel k(m: size, d: size) {
    axis i = sparse_variable(m)
    axis f = dense_fixed(d)
    buffer a: f32[i] in
    buffer x: f32[f] in
    buffer y: f32[f] out
    iterate s [i, f] as RS {
      if (m > 0) { y[f] *= min(select(f == 1, a[i], x[f]), min(a[i], a[i])) }
      else { y[f] *= min(max(f32(1), x[f]), a[i]) }
    }
  }
  schedule k.fours {
    split f by 4 -> (fo, fv)
    vectorize fv
    split i by 2 -> (io, ii)
    split fo by 4 -> (foo, foi)
    fuse (foo, foi)
    atomic y
  }`)
  const { text } = program.kernel().schedule('fours').emit('cuda')[0]!
  const lines = text.split('\n')
  const declared = lines.findIndex((l) => l.includes('const float x_0 = '))
  expect(declared).toBeGreaterThan(0)
  expect(lines.slice(0, declared).filter((l) => /\bx_\d\b/.test(l))).toEqual([])
})
