/**
 * What is updated and loaded in one launch on CUDA.
 *
 * Loads of what a launch only reads, beside loads of what it updates: on CUDA none of them is said to be of memory
 * that nobody writes, since the compiler says so of what it makes of two of them, and reads old values.
 */
import { expect, test } from 'vitest'
import { load } from '../../src/node.ts'
import { noNvcc, ptxOf } from '../support/nvcc.ts'

const text = (t: string, w: string, value: string): string => `kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  buffer C: i32[i, j] in
  buffer W: ${w}[j] in
  buffer Q: ${t}[i, j] inout
  buffer O: ${t}[i, j] out
  iterate row [i] as S {
    iterate updated [j] as S { Q[i, j] = ${t}(Q[i, j] * Q[i, j]) }
    ${value}
  }
}
schedule k.rows { bind i to block.x }`

const choice = (t: string): string =>
  `iterate chosen [j] as S { O[i, j] = select(C[i, j] > 0, ${t}(W[j]), Q[i, j]) }`

const VALUES = {
  'a choice': choice('f32'),
  'a choice, the other way': 'iterate chosen [j] as S { O[i, j] = select(C[i, j] > 0, Q[i, j], W[j]) }',
}

/** Pairs that the compiler loads alike, and one that it does not. */
const ALIKE = [
  ['f32', 'f32'],
  ['f64', 'f64'],
  ['i32', 'u32'],
  ['f16', 'bf16'],
  ['u8', 'i8'],
] as const

const emitted = async (t: string, w: string, value: string): Promise<string> =>
  (await load(text(t, w, value))).kernel().schedule('rows').emit('cuda')[0]!.text

test.each(ALIKE)('%s is updated, %s only read', async (t, w) => {
  const cuda = await emitted(t, w, choice(t))
  expect(cuda).toMatch(/const [a-z ]+\* W,/)
  expect(cuda).toMatch(/__restrict__ Q,/)
})

test('other buffers than the updated ones keep read-only loads', async () => {
  const cuda = await emitted('f32', 'f32', choice('f32'))
  expect(cuda).toMatch(/const int\* __restrict__ C,/)
})

test('address names are followed', async () => {
  const value = `iterate chosen [j] as S {
      let x = Q[i, j] + 1
      let y = W[j] + 2
      O[i, j] = select(C[i, j] > 0, y, x) * x * y
    }`
  expect(await emitted('f32', 'f32', value)).toMatch(/const float\* W,/)
})

test('computed values and copied values are not mixed', async () => {
  const sums = text('f32', 'f32', 'iterate cells [j] as S { O[i, j] = Q[i, j] + W[j] * 2 }')
  const kernel = (await load(sums.replace('Q[i, j] * Q[i, j]', 'Q[i, j] + 1'))).kernel().schedule('rows')
  expect(kernel.emit('cuda')[0]!.text).toMatch(/const float\* __restrict__ W,/)
})

test.runIf(noNvcc === null).each(Object.entries(VALUES))(
  '%s: no selected address is in unwritten memory',
  async (_name, value) => {
    const ptx = ptxOf(await emitted('f32', 'f32', value))
    const selected = new Set([...ptx.matchAll(/selp\.b64\s+(%rd\d+)/g)].map((m) => m[1]))
    const old = [...ptx.matchAll(/ld\.global\.nc\S*\s+[^[]*\[(%rd\d+)/g)].map((m) => m[1])
    expect(old.length).toBeGreaterThan(0)
    expect(old.filter((register) => selected.has(register))).toEqual([])
  },
)

test.runIf(noNvcc === null)('a sub-word atomic update is followed by a fresh load', async () => {
  const program = await load(`kernel k(m: size, n: size) {
    axis i = dense_fixed(m)
    axis j = dense_fixed(n)
    buffer V: i8[i] in
    buffer W: i8[j] in
    buffer M: i8[i, j] in
    buffer D: i8[i] inout
    iterate row [i] as S {
      D[i] = i8(M[i, 0] % 7)
      if (select(V[i] != 3, D[i], V[i]) > 0) {
        iterate least [j] as R { D[i] min= i8(W[j] - 1) }
        if (D[i] >= 0 and D[i] < m) { D[i] = i8(1 - D[i]) }
      }
    }
  }
  schedule k.rows {
    split row.i by 2 -> (io, ii)
    bind io to block.y, ii to thread.y
    split least.j by 3 -> (jo, ji)
    cache_write D at jo in shared
    atomic D
  }`)
  const ptx = ptxOf(program.kernel().schedule('rows').emit('cuda')[0]!.text)
  const after = ptx.slice(ptx.lastIndexOf('.cas.b32'))
  expect(after).toMatch(/ld\.global\.[su]8/)
})
