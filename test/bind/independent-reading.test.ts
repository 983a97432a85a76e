/**
 * Compiler and reference read what is bound through the same code. Here a plain loop over the raw values reads it once more:
 * every kind of source, every element type, in formats, after `write` too.
 */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { bytesSource } from '../../src/io/byte-source.ts'
import { readTensorFrom } from '../../src/io/dispatch.ts'
import { arrayClass } from '../../src/ir/values/arrays.ts'
import { DTYPES, type Dtype, INT_RANGE, isFloat } from '../../src/ir/values/dtype.ts'
import { toBf16, toF16 } from '../../src/ir/values/half.ts'
import type { Built, Device, Tensor, ValueArray } from '../../src/node.ts'
import { coords, dense, devices, load, stored } from '../../src/node.ts'
import { expectedOf } from '../../src/run/bind/results/reference-inputs.ts'
import { runs } from '../support/cases.ts'
import { standard } from '../support/packaged-formats.ts'
import { nearest } from '../support/plain-evaluator.ts'

const FORMATS = [
  null,
  'csr',
  'csc',
  'coo',
  'dcsr',
  'by_length',
  'ell',
  'sell(2, 2)',
  'csr_panels(2)',
  'bsr(2)',
  'bsr_masked(2)',
  'panels(2, 2)',
  'dia',
  'hyb(1, 2)',
]
const NAMES = FORMATS.flatMap((f) => (f === null ? [] : [f.replace(/\(.*/, '')]))
const [m, n] = [5, 6]

/** Y = A, as a product with a unit matrix, whose values f64 holds. */
const textOf = (t: Dtype): string => `${standard(...NAMES, 'rows_ell')}
kernel read(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis c = dense_fixed(n)
  buffer A: ${t}[i, j] in
  buffer E: f64[jd, c] in
  buffer Y: f64[i, c] out
  iterate sum [i, j, c] as SRS { Y[i, c] += f64(A[i, j]) * E[j, c] }
}`
const E = dense(
  [n, n],
  Float64Array.from({ length: n * n }, (_, e) => (e % (n + 1) === 0 ? 1 : 0)),
)

let cpu: Device
const compiled = new Map<string, Built>()
beforeAll(async () => {
  cpu = await devices.cpu()
})
afterAll(async () => {
  for (const k of compiled.values()) k.release()
  await cpu.dispose()
})

async function compiledFor(t: Dtype, format: string | null): Promise<Built> {
  const key = `${t} ${format}`
  const known = compiled.get(key)
  if (known) return known
  const kernel = (await load(textOf(t))).kernel('read')
  const made = await (format === null ? kernel : kernel.as('A', format)).build(cpu, { auto: false })
  compiled.set(key, made as Built)
  return made as Built
}

interface Entry {
  readonly i: number
  readonly j: number
  readonly v: number
}
type Kind = 'coords' | 'dense' | 'stored' | 'mtx' | 'npy'

const typed = (xs: readonly number[], t: Dtype): ValueArray =>
  arrayClass(t).from(t === 'f16' ? xs.map(toF16) : t === 'bf16' ? xs.map(toBf16) : xs) as ValueArray

const inRows = (entries: readonly Entry[]): readonly Entry[] =>
  entries.toSorted((a, b) => a.i - b.i || a.j - b.j)

/** Row by row; what is at one place adds up. */
function matrixOf(entries: readonly Entry[]): number[] {
  const all = Array<number>(m * n).fill(0)
  for (const { i, j, v } of entries) all[i * n + j]! += v
  return all
}

/** A tensor of these entries, of which only those by coordinates repeat. */
async function tensorOf(kind: Kind, entries: readonly Entry[], from: Dtype): Promise<Tensor> {
  switch (kind) {
    case 'coords':
      return coords(
        [m, n],
        [Int32Array.from(entries, (e) => e.i), Int32Array.from(entries, (e) => e.j)],
        typed(
          entries.map((e) => e.v),
          from,
        ),
        from,
      )
    case 'dense':
      return dense([m, n], typed(matrixOf(entries), from), from)
    case 'stored': {
      const rows = inRows(entries)
      const indptr = Int32Array.from({ length: m + 1 }, (_, i) => rows.filter((e) => e.i < i).length)
      const j = { indptr, indices: Int32Array.from(rows, (e) => e.j) }
      return stored(
        [m, n],
        { j },
        typed(
          rows.map((e) => e.v),
          from,
        ),
        from,
      )
    }
    case 'mtx': {
      const field = isFloat(from) ? 'real' : 'integer'
      const lines = entries.map((e) => `${e.i + 1} ${e.j + 1} ${e.v}`)
      const text = [
        `%%MatrixMarket matrix coordinate ${field} general`,
        `${m} ${n} ${entries.length}`,
        ...lines,
      ]
      return readTensorFrom(bytesSource('a.mtx', new TextEncoder().encode(`${text.join('\n')}\n`)))
    }
    case 'npy': {
      const head = `{'descr': '<f8', 'fortran_order': False, 'shape': (${m}, ${n}), }\n`
      const bytes = new Uint8Array(10 + head.length + 8 * m * n)
      bytes.set([0x93, ...new TextEncoder().encode('NUMPY'), 1, 0, head.length, 0])
      bytes.set(new TextEncoder().encode(head), 10)
      const view = new DataView(bytes.buffer)
      for (const [e, v] of matrixOf(entries).entries()) view.setFloat64(10 + head.length + 8 * e, v, true)
      return readTensorFrom(bytesSource('a.npy', bytes))
    }
  }
}

/** Values that both types hold, also added up in pairs; fractions where both are floats. Dense zeros would not be stored. */
function values(from: Dtype, to: Dtype): fc.Arbitrary<number> {
  if (from === 'bool' || to === 'bool') return fc.constant(1)
  const ranges = [from, to].flatMap((t) => (isFloat(t) ? [] : [INT_RANGE[t as keyof typeof INT_RANGE]]))
  if (ranges.length === 0)
    return fc.oneof(
      fc.constantFrom(0.1, -1 / 3, 1 + 2 ** -11),
      fc.double({ min: 0.001, max: 9, noNaN: true }),
    )
  const min = Math.max(-100, ...ranges.map((r) => Math.ceil(r[0] / 2)))
  return fc
    .integer({ min, max: Math.min(100, ...ranges.map((r) => Math.floor(r[1] / 2))) })
    .map((v) => v || 1)
}

const KINDS: readonly Kind[] = ['coords', 'dense', 'stored', 'mtx', 'npy']
const cases = fc
  .record({
    kind: fc.constantFrom(...KINDS),
    from: fc.constantFrom(...DTYPES),
    to: fc.constantFrom(...DTYPES),
    format: fc.constantFrom(...FORMATS),
  })
  // Numbers of files are doubles, or 32-bit integers.
  .map((c) => (c.kind === 'npy' ? { ...c, from: 'f64' as const } : c))
  .chain((c) => {
    const entry = fc.record({ i: fc.nat(m - 1), j: fc.nat(n - 1), v: values(c.from, c.to) })
    const apart = fc.uniqueArray(entry, { maxLength: 14, selector: (e) => e.i * n + e.j })
    return fc.record({
      ...{ kind: fc.constant(c.kind), from: fc.constant(c.from), to: fc.constant(c.to) },
      format: fc.constant(c.format),
      entries: apart,
      twice: fc.constant(c.kind === 'coords' && c.to !== 'bool' && c.from !== 'bool'),
      next: fc.array(values(c.from, c.to), { minLength: 14, maxLength: 14 }),
    })
  })

test('kernels and the reference read the bound values', async () => {
  await fc.assert(
    fc.asyncProperty(cases, async ({ kind, from, to, format, entries, twice, next }) => {
      const rounded = (es: readonly Entry[]) =>
        es.map((e) => ({ ...e, v: kind === 'mtx' ? e.v : nearest(from, e.v) }))
      const given = twice ? [...entries, ...entries.slice(0, 3)] : entries
      const compiledKernel = await compiledFor(to, format)
      const prepared = await compiledKernel.bind({ A: await tensorOf(kind, given, from), E })
      const check = async (raw: readonly Entry[]): Promise<void> => {
        const want = matrixOf(rounded(raw)).map((v) => nearest(to, v) + 0)
        await prepared.run()
        const got = await prepared.get('Y')
        expect(Array.from(got.values!, (v) => v + 0)).toEqual(want)
        const { buffers } = expectedOf(prepared.code.compilation.source, prepared.executable.bound)
        expect(Array.from(buffers.Y!.values, (v) => v + 0)).toEqual(want)
      }
      try {
        await check(given)
        if (kind === 'mtx' || kind === 'npy') return
        const changed = entries.map((e, k) => ({ ...e, v: next[k]! }))
        await prepared.set('A', await tensorOf(kind, changed, from))
        await check(changed)
      } finally {
        prepared.free()
      }
    }),
    { numRuns: runs(240) },
  )
})
