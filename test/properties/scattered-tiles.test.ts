import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { reference } from '../../src/reference/index.ts'
import { bindInputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/results/reference-inputs.ts'
import type { Compilation } from '../../src/run/compile/compile.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { Choices } from '../support/choices.ts'
import { assertCompared, Skipped } from '../support/compared.ts'
import { products } from '../support/pair-gen.ts'
import { gated, panels, type Scatter, scattered } from '../support/scatter-gen.ts'
import { agreeOnAll, agreeOnDevice } from './agree.ts'
import { numbers, parameters } from './property-cases.ts'

/** The scheduled kernel; its refusal's code where there is one. */
function made({ text }: Scatter): Compilation | string {
  try {
    const { compilation } = parseProgram(text).kernel().schedule('s')
    void compilation.loops
    void compilation.plan
    return compilation
  } catch (e) {
    if (e instanceof SptError && /^schedule\//.test(e.diagnostics[0]!.code)) return e.diagnostics[0]!.code
    throw new Error(`${(e as Error).message}\n${text}`)
  }
}

const told = (e: unknown, s: Scatter): unknown =>
  e instanceof Skipped
    ? e
    : new Error(`${e instanceof Error ? e.stack : e}\n${s.text}\n${JSON.stringify(s.inputs)}`)

const WHAT = [
  ['a tile of listed rows is written back to its rows', scattered, 15],
  ['a tile is gated and combined where it is complete', gated, 15],
  ['rows that pairs gather are multiplied a tile at a time and combined where they belong', products, 15],
  // Few of them are refused.
  ['threads fill copies of gathered rows for tiles beyond the last row', panels, 20],
] as const

test.each(WHAT)(
  '%s, at every stage and on the cpu',
  async (_, make, usual) => {
    await assertCompared(
      numbers,
      async (choices) => {
        const s = make(new Choices(choices))
        const c = made(s)
        if (typeof c === 'string') throw new Skipped(c)
        await agreeOnAll(c, s.inputs).catch((e) => {
          throw told(e, s)
        })
      },
      parameters(usual),
    )
  },
  3_600_000,
)

test.each(WHAT)(
  '%s, on webgpu',
  async (_, make) => {
    const device = await createNodeWebGpu()
    await assertCompared(
      numbers,
      async (choices) => {
        const s = make(new Choices(choices))
        const c = made(s)
        if (typeof c === 'string') throw new Skipped(c)
        const bound = bindInputs(c.kernel, s.inputs)
        const expected = reference(c.source, referenceInputs(c.source, bound)).buffers
        await agreeOnDevice(device, c, bound, expected).catch((e) => {
          throw told(e, s)
        })
      },
      parameters(4),
    )
    await device.dispose()
  },
  3_600_000,
)

test('rows of a tile with conflicting writes to another buffer are rejected', () => {
  const c = made({
    text: `kernel k(m: size, s: size, q: size) {
  axis r = dense_fixed(m)
  axis a = dense_fixed(s)
  axis p = dense_fixed(q)
  buffer L: i32[a] in
  buffer X: i32[a, p] in
  buffer C: i32[r] out
  buffer y: i32[] out
  iterate outer [a] as R {
    iterate rows [p] as R { C[L[a]] += X[a, p] }
    iterate last [p] as R { y[] max= X[a, p] }
  }
}
schedule k.s { split outer.a by 4 -> (ao, ar)  cache_write C at ao in register }`,
    inputs: {},
  })
  expect(c).toBe('schedule/not-one-reduction')
})

/** What `k.s` of a text looks like after its steps. */
const shown = (kernel: string, steps: string): string =>
  parseProgram(`${kernel}\nschedule k.s { ${steps} }`).kernel().schedule('s').show(2)

test('a copy does not test rows of a tile outside of its address', () => {
  const kernel = `kernel k(m: size, n: size, q: size) {
  axis i = dense_fixed(m)
  axis o = dense_fixed(q)
  axis p = dense_fixed(4)
  axis j = dense_fixed(n)
  axis g = dense_variable(o, m)
  axis r = sparse_fixed(g, m, 4)
  buffer A: i32[i, o, p] in
  buffer B: i32[o, p, j] in
  buffer C: i32[i, j] out
  iterate sum [o, g, r, p, j] as RRRRS { C[r, j] += A[r, o, p] * B[o, p, j] }
}`
  const steps = `fuse (o, g) -> t  atomic C  require n % 4 == 0  split j by 4 -> (fo, fj)
    reorder (t, fo, r, fj, p)  bind t to block.x, fo to block.y  cache_write C at fo in register
    cache_read A at fo in shared padded 0 -> As  cache_read B at fo in shared -> Bs`
  const text = shown(kernel, steps)
  // The list decides which rows of A there are, where they come from and where they go.
  expect(text.match(/if r_indices\[.*\] < m/g)).toHaveLength(1)
  expect(text.match(/where r_indices\[.*\] < m/g)).toHaveLength(1)
  expect(text).not.toMatch(/where.*\n(.*\n)?.*Bs\[.*\] = B/)
})

test('threads with short rows take part in a cooperative copy', () => {
  const kernel = `format panels(g, s) over (i, k) {
  axis io = dense_fixed(ceildiv(i, g))
  axis go = dense_variable(io, k)
  axis ko = sparse_fixed(go, k, s) padded with 0
  axis ii = dense_fixed(g)
  map (i, k) -> (i / g, rank(k by i / g) / s, k, i % g)
  inverse (io, go, ko, ii) -> (io * g + ii, ko)
}
kernel k(m: size, k: size) {
  axis i = dense_fixed(m)
  axis p = sparse_variable(i, k)
  axis pd = dense_fixed(k)
  axis f = dense_fixed(4)
  buffer A: i32[i, p] in
  buffer X: i32[pd, f] in
  buffer C: i32[i, f] out
  iterate sum [i, p, f] as SRS { C[i, f] += A[i, p] * X[p, f] }
}`
  const steps = `A as panels(8, 2)  split ii by 4 -> (w, r)  reorder (io, w, go, r, f, ko)
    bind io to block.x, w to thread.y  cache_write C at w in register -> Cr
    cache_read X at go in shared -> Xs  cache_read A at go in shared -> As`
  const text = shown(kernel, steps)
  expect(text).toMatch(/for f_\d+ \(Xs\.f\) in 0\.\.4\n +Xs\[/)
  expect(text.match(/ < m/g)).toHaveLength(2)
})

test('rows under segments of any length are mixed-radix digits: their tiles are combined in place', () => {
  const text = `kernel k(m: size, n: size, experts: size, q: size) {
  axis i = dense_fixed(m)
  axis e = dense_fixed(experts)
  axis p = dense_fixed(q)
  axis j = dense_fixed(n)
  axis go = dense_variable(e, m)
  axis ir = sparse_fixed(go, m, 4)
  buffer A: i32[i, e, p] in
  buffer B: i32[e, p, j] in
  buffer H: i32[e, go, ir, j] local
  buffer C: i32[i, j] out
  iterate sum [e, go, ir, p, j] as SSSRS { H[e, go, ir, j] += A[ir, e, p] * B[e, p, j] }
  iterate scatter [e, go, ir, j] as RRRS { C[ir, j] += H[e, go, ir, j] * 2 }
}`
  const steps = (rows: number): string => `atomic C  split sum.ir by ${rows} -> (it, rw)
    reorder (sum.e, sum.go, it, sum.j, p, rw)  bind sum.e to block.x
    cache_write H at sum.j in register -> Cr  compute_at scatter at sum.j`
  expect(shown(text, steps(2))).toContain('H[(go_indptr[e] + go) * 4 + (it * 2 + rw_3), j] * 2')
  expect(shown(text, steps(3))).toContain('for rw_3 (scatter.rw) in 0..3  reduce  where it * 3 + rw_3 < 4')
})
