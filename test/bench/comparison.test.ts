/** The comparison with peers, without a GPU: what decides that a result is right, and what figures are made of. */
import { describe, expect, test } from 'vitest'
import { blockedEll, halves, randomBlocks, rowsOf, widen } from '../../bench/gpu/blocks.ts'
import { fieldOf, parseCandidate, widthValues } from '../../bench/gpu/candidates.ts'
import { type Case, type Contestant, compete, type Entry, ratios } from '../../bench/gpu/case.ts'
import { DeviceLost } from '../../bench/gpu/device-lost.ts'
import { ExpectedProduct, ExpectedSamples, PRECISION } from '../../bench/gpu/expected.ts'
import { goOn, type State } from '../../bench/gpu/loss.ts'
import type { Csr } from '../../bench/gpu/matrix.ts'
import { choose, fillNormal } from '../../bench/gpu/random.ts'
import { buildingText, preparationText, suiteText, summarise } from '../../bench/gpu/report.ts'
import type { Times } from '../../bench/gpu/timing.ts'
import { type PowerLaw, powerLaw } from '../../bench/power-law.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'

/** A small matrix with an empty row. */
function matrix(rows = 40): Csr {
  const columns = 30
  const indptr = new Int32Array(rows + 1)
  const indices: number[] = []
  for (let r = 0; r < rows; r++) {
    if (r !== 7) indices.push(...choose(1 + (r % 9), columns, r))
    indptr[r + 1] = indices.length
  }
  const values = fillNormal(new Float32Array(indices.length), 1)
  return { name: 'small', rows, columns, indptr, indices: Int32Array.from(indices), values }
}

function product(A: Csr, B: Float32Array, width: number): Float32Array {
  const C = new Float32Array(A.rows * width)
  for (let r = 0; r < A.rows; r++)
    for (let e = A.indptr[r]!; e < A.indptr[r + 1]!; e++)
      for (let f = 0; f < width; f++) C[r * width + f]! += A.values[e]! * B[A.indices[e]! * width + f]!
  return C
}

describe('a product', () => {
  const A = matrix()
  const width = 12
  const B = fillNormal(new Float32Array(A.columns * width), 2)
  const expected = new ExpectedProduct(A, B, width)
  const C = product(A, B, width)

  test('is right', () => expect(expected.check(C, PRECISION.f32)).toMatchObject({ ok: true, problem: '' }))

  test.each([
    ['one element is off', (x: Float32Array) => void (x[200]! += 1e-4)],
    ['one element is not written', (x: Float32Array) => void (x[471] = Number.NaN)],
    ['an empty row is not', (x: Float32Array) => void (x[7 * width] = 1e-30)],
    ['two elements are exchanged', (x: Float32Array) => void ([x[0], x[1]] = [x[1]!, x[0]!])],
  ])('is wrong where %s', (_, spoil) => {
    const copy = C.slice()
    spoil(copy)
    expect(expected.check(copy, PRECISION.f32).ok).toBe(false)
  })

  test('every row is checked, sampled or not', () => {
    const rows = 6000
    const tall = matrix(rows)
    const operand = fillNormal(new Float32Array(tall.columns * 2), 3)
    const all = new ExpectedProduct(tall, operand, 2)
    expect(all.checked).toMatch(/^40\d\d rows by element, all 6000 by projection$/)
    const right = product(tall, operand, 2)
    expect(all.check(right, PRECISION.f32).ok).toBe(true)
    const missed: number[] = []
    for (let r = 0; r < rows; r += 7) {
      const copy = right.slice()
      copy[2 * r] = Number.NaN
      if (all.check(copy, PRECISION.f32).ok) missed.push(r)
    }
    expect(missed).toEqual([])
  })
})

test('samples are right, off, or missing', () => {
  const A = matrix()
  const depth = 9
  const X = fillNormal(new Float32Array(A.rows * depth), 4)
  const Y = fillNormal(new Float32Array(A.columns * depth), 5)
  const expected = new ExpectedSamples(A, X, Y, depth)
  const C = new Float32Array(A.indices.length)
  for (let r = 0; r < A.rows; r++)
    for (let e = A.indptr[r]!; e < A.indptr[r + 1]!; e++)
      for (let k = 0; k < depth; k++) C[e]! += X[r * depth + k]! * Y[A.indices[e]! * depth + k]!
  expect(expected.check(C, PRECISION.f32, false).ok).toBe(true)
  expect(expected.check(C, PRECISION.f32, true).ok).toBe(false)
  expect(
    expected.check(
      C.map((c, e) => c * A.values[e]!),
      PRECISION.f32,
      true,
    ).ok,
  ).toBe(true)
  for (const spoil of [1e-3, Number.NaN]) {
    const copy = C.slice()
    copy[17]! += spoil
    expect(expected.check(copy, PRECISION.f32, false).ok).toBe(false)
  }
})

test('blocks, rows and padded rows of blocks are one matrix', () => {
  const m = randomBlocks(32, 4, 0.3, 1)
  const { csr, bits } = rowsOf(m)
  expect(csr.indices.length).toBe(m.indices.length * 16)
  expect([...widen(bits)]).toEqual([...csr.values])
  const dense = new Float32Array(32 * 32)
  for (let r = 0; r < 32; r++)
    for (let e = csr.indptr[r]!; e < csr.indptr[r + 1]!; e++) dense[r * 32 + csr.indices[e]!] = csr.values[e]!
  const ell = blockedEll(m)
  const again = new Float32Array(32 * 32)
  const values = widen(ell.values)
  for (let r = 0; r < 32; r++)
    for (let k = 0; k < ell.width; k++) {
      const block = ell.indices[Math.floor(r / 4) * (ell.width / 4) + Math.floor(k / 4)]!
      if (block >= 0) again[r * 32 + block * 4 + (k % 4)] = values[r * ell.width + k]!
    }
  expect([...again]).toEqual([...dense])
  expect(halves(3, 1).length).toBe(3)
})

test('the generator: both directions, no duplicates, weights as they should be', () => {
  const options: PowerLaw = { nodes: 500, edges: 4000, alpha: 0.5, offset: 10, seed: 3 }
  const { indptr, indices } = powerLaw(options, 'j').arrays.j as { indptr: Int32Array; indices: Int32Array }
  const has = new Set<number>()
  for (let r = 0; r < 500; r++)
    for (let e = indptr[r]!; e < indptr[r + 1]!; e++) {
      if (e > indptr[r]!) expect(indices[e]!).toBeGreaterThan(indices[e - 1]!)
      has.add(r * 500 + indices[e]!)
    }
  for (const at of has) expect(has.has((at % 500) * 500 + Math.floor(at / 500))).toBe(true)
  // The heaviest node is an end of its share of all ends, before duplicates go.
  const weights = Array.from({ length: 500 }, (_, k) => (k + 10) ** -0.5)
  const share = weights[0]! / weights.reduce((a, b) => a + b, 0)
  const longest = Math.max(...indptr.slice(1).map((end, r) => end - indptr[r]!))
  expect(longest).toBeGreaterThan(0.6 * 8000 * share)
  expect(longest).toBeLessThan(1.5 * 8000 * share)
})

describe('candidates', () => {
  test('are read', () => {
    expect(parseCandidate('a/my-kernel.spt:fast(1, 2)')).toMatchObject({
      file: 'a/my-kernel.spt',
      kernel: 'my_kernel',
      schedule: 'fast',
      args: [1, 2],
    })
    expect(parseCandidate('k.spt:other.gpu({b})', { b: 16 })).toMatchObject({ kernel: 'other', args: [16] })
    expect(parseCandidate('k.spt')).toMatchObject({ kernel: 'k', schedule: '', args: [] })
    expect(() => parseCandidate('gpu(8)')).toThrow('FILE.spt')
  })

  test('that are passed replace the default ones of their kernel', () => {
    expect(fieldOf('spmm', [], widthValues(32)).candidates.length).toBeGreaterThan(1)
    const asked = fieldOf('spmm', ['spmm.spt:spmm.ell', 'sddmm.spt:sddmm.gpu'], widthValues(32))
    expect(asked).toMatchObject({ standard: 'spmm.spt:spmm.ell', candidates: [{ schedule: 'ell' }] })
  })
})

const times = (event: number, backToBack: number | null = null): Times => ({
  event,
  flushed: 2 * event,
  backToBack,
  repeats: 50,
})
const entry = (name: string, side: Entry['side'], t: Times | null): Entry => ({
  name,
  side,
  result: 'ok',
  note: '',
  error: 0,
  scouted: t?.event ?? null,
  times: t,
})
const caseOf = (data: string, entries: readonly Entry[], standard: string | null = null): Case => ({
  suite: 's',
  data,
  at: 'N = 32',
  entries,
  checked: 'all',
  floor: 1,
  flops: 1e6,
  standard,
})

describe('figures', () => {
  test('long runs are compared between events, short ones back to back', () => {
    const long = caseOf('x', [entry('p', 'peer', times(100, 90)), entry('o', 'ours', times(50, 20))])
    expect(ratios(long)).toEqual({ best: 2, flushed: 2, standard: null })
    const short = caseOf('x', [entry('p', 'peer', times(30, 24)), entry('o', 'ours', times(15, 8))], 'o')
    expect(ratios(short)).toEqual({ best: 3, flushed: 2, standard: 3 })
  })

  test('means are geometric, the worst case is named, and what is missing is counted', () => {
    const cases = [
      caseOf('a', [entry('p', 'peer', times(400)), entry('o', 'ours', times(100))]),
      caseOf('b', [entry('p', 'peer', times(100)), entry('o', 'ours', times(100))]),
      caseOf('c', [entry('p', 'peer', times(100)), entry('o', 'ours', null)]),
    ]
    expect(summarise('s', cases)).toMatchObject({
      geometricMean: 2,
      worst: { data: 'b', ratio: 1 },
      cases: 3,
      incomplete: 1,
    })
    const text = suiteText('s', cases)
    expect(text).toContain("the best peer's time over ours, over 2 of 3 cases")
    expect(text).toContain('best candidate:  geometric mean 2.00, worst 1.00 (b, N = 32); cold 2.00')
    expect(text).toContain('default:         geometric mean -\n')
  })

  test('the default dispatch is reported too, with its own worst case', () => {
    const cases = [
      caseOf(
        'a',
        [entry('p', 'peer', times(400)), entry('o', 'ours', times(100)), entry('s', 'ours', times(800))],
        's',
      ),
      caseOf('b', [entry('p', 'peer', times(200)), entry('s', 'ours', times(100))], 's'),
    ]
    expect(summarise('s', cases)).toMatchObject({
      worst: { data: 'b', at: 'N = 32', ratio: 2 },
      standard: 1,
      standardWorst: { data: 'a', at: 'N = 32', ratio: 0.5 },
    })
    expect(suiteText('s', cases)).toContain('default:         geometric mean 1.00, worst 0.50 (a, N = 32)\n')
  })

  test('formats are identified by the selected schedule, and built once', () => {
    const built = (chosen: string, ms: number): Entry => ({
      ...entry('k.auto', 'ours', times(1)),
      facts: { 'build ms': ms, bytes: 2e6, chosen },
    })
    const cases = [[built('ell', 1)], [built('hyb(1, 2)', 2)], [built('ell', 3)]].map((e) => caseOf('a', e))
    const rows = buildingText(cases).split('\n').slice(4)
    expect(rows.map((r) => r.split(/ {2,}/))).toEqual([
      ['a', 'k.auto → ell', '1.00', '2.0'],
      ['a', 'k.auto → hyb(1, 2)', '2.00', '2.0'],
    ])
  })

  test('the selected schedule is prepared and named', () => {
    const head = { candidate: 'k.auto', device: 'cuda', cached: true, launches: 2, resources: {} }
    const text = preparationText([
      { ...head, chosen: 'ell', loading: 1, planning: 2, emission: 3, compilation: 4 },
    ])
    expect(text.split('\n').at(-1)!.split(/ {2,}/)).toEqual([
      'k.auto → ell',
      'cuda',
      '1.0',
      '2.0',
      '3.0',
      '4 (cached)',
      '2',
    ])
  })

  test('wrong or failing candidates are not measured, and the reason is reported', async () => {
    const running = (us: number, ok: boolean): Contestant['enter'] => {
      return async () => ({
        check: async () => ({ ok, error: 0, problem: ok ? '' : 'element 3 is off' }),
        scout: async () => us,
        measure: async () => times(us),
        free: () => {},
      })
    }
    const broken = async (): Promise<never> => {
      throw new Error('no memory')
    }
    const entries = await compete(
      [
        { name: 'slow', side: 'ours', enter: running(90, true) },
        { name: 'good', side: 'ours', enter: running(50, true) },
        { name: 'wrong', side: 'ours', enter: running(1, false) },
        { name: 'broken', side: 'ours', enter: broken },
        { name: 'guilty', side: 'ours', enter: running(2, true) },
        { name: 'peer', side: 'peer', enter: running(60, true) },
      ],
      'slow',
      { late: () => false, culprits: new Map([['guilty', 'ended the device']]) },
    )
    expect(entries.map((e) => [e.name, e.result, e.note, e.times?.event ?? null])).toEqual([
      ['slow', 'ok', '', 90],
      ['good', 'ok', '', 50],
      ['wrong', 'wrong', 'element 3 is off', null],
      ['broken', 'failed', 'no memory', null],
      ['guilty', 'failed', 'ended the device', null],
      ['peer', 'ok', '', 60],
    ])
  })

  test('a candidate that loses the device is named', async () => {
    const fault = async (): Promise<never> => {
      throw new SptError({ code: 'device/fault', message: 'an illegal address', hint: 'start a new process' })
    }
    const referee = { late: () => false, culprits: new Map<string, string>() }
    const run = compete([{ name: 'guilty', side: 'ours', enter: fault }], null, referee)
    await expect(run).rejects.toMatchObject({
      culprit: 'guilty',
      message: 'device/fault: an illegal address',
    })
    await expect(run).rejects.toThrow(DeviceLost)
  })
})

test('a run continues in another process, from the recorded state', () => {
  const state: State = {
    cases: [caseOf('a', [entry('o', 'ours', times(100))])],
    preparations: [],
    python: null,
    culprits: [['guilty', 'ended the device']],
    libraries: { cuSPARSE: '12603' },
    milliseconds: 1000,
  }
  const script = `
    const state = JSON.parse(require('fs').readFileSync(process.env.SPT_BENCH_STATE, 'utf8'))
    process.exit(state.cases[0].data === 'a' && state.culprits[0][0] === 'guilty' ? 7 : 1)`
  expect(goOn(['-e', script], state)).toBe(7)
})
