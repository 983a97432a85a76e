/** Schedules that are chosen when data are bound: which one, by what, and that the result is the same. */

import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { Selector } from '../../src/api/dispatch/selector.ts'
import type { RunInputs } from '../../src/api/inputs/bound-inputs.ts'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import type { Device, Tensor } from '../../src/node.ts'
import { type Built, coords, dense, devices, load, SptError, stored } from '../../src/node.ts'
import { LONG, runs } from '../support/cases.ts'
import { complaint, MUL } from './support.ts'

const KERNEL = `${MUL}

format bsr(b) over (i, j) {
  axis io = dense_fixed(ceildiv(i, b))
  axis jo = sparse_variable(io, ceildiv(j, b))
  axis ii = dense_fixed(b)
  axis ji = dense_fixed(b)
  map (i, j) -> (i / b, j / b, i % b, j % b)
  inverse (io, jo, ii, ji) -> (io * b + ii, jo * b + ji)
}

schedule mul.wide(rows = 2, each = 4) {
  require d % each == 0
  split i by rows -> (io, ii)
  split f by each -> (fo, fi)
  reorder (io, ii, fo, j, fi)
  cache_write C at fo in register
  unroll fi
}
schedule mul.blocks(b) {
  A as bsr(b)
}
schedule mul.plain {
  reorder (i, f, j)
}
`
const choosing = async (branches: string, params = '') =>
  (await load(`${KERNEL}\nschedule mul.auto${params} choose {\n${branches}\n}`)).kernel()

let cpu: Device
beforeAll(async () => {
  cpu = await devices.cpu()
})
afterAll(() => cpu.dispose())

/** A matrix as the columns of each row, and how many columns and features there are. */
interface Case {
  readonly rows: readonly (readonly number[])[]
  readonly n: number
  readonly d: number
}
const matrices: fc.Arbitrary<Case> = fc.integer({ min: 1, max: 6 }).chain((n) =>
  fc.record({
    rows: fc.array(fc.subarray([...Array(n).keys()]), { minLength: 1, maxLength: 6 }),
    n: fc.constant(n),
    d: fc.integer({ min: 1, max: 9 }),
  }),
)

/** The same, counted by hand. */
function expected({ rows, n, d }: Case): Record<string, number> {
  const lengths = rows.map((r) => r.length)
  const count = lengths.reduce((a, b) => a + b, 0)
  return {
    m: rows.length,
    n,
    d,
    'count(j)': count,
    'nnz(A)': count,
    'longest(j)': Math.max(...lengths),
    'shortest(j)': Math.min(...lengths),
    'mean(j)': count / rows.length,
    'empty(j)': lengths.filter((l) => l === 0).length,
    'segments(j)': rows.length,
  }
}

const WAYS = ['coords', 'shuffled', 'repeated', 'doubled', 'stored', 'dense'] as const
type Way = (typeof WAYS)[number]

function tensor({ rows, n }: Case, way: Way): Tensor {
  const shape = [rows.length, n]
  const at = rows.flatMap((r, i) => r.map((j) => [i, j] as const))
  const value = (i: number, j: number): number => ((3 * i + j) % 5) - 7
  if (way === 'dense') {
    const values = new Float32Array(rows.length * n)
    for (const [i, j] of at) values[i * n + j] = value(i, j)
    return dense(shape, values)
  }
  if (way === 'stored') {
    const indptr = [0]
    for (const r of rows) indptr.push(indptr.at(-1)! + r.length)
    const arrays = { j: { indptr: Int32Array.from(indptr), indices: Int32Array.from(at, ([, j]) => j) } }
    return stored(
      shape,
      arrays,
      Float32Array.from(at, ([i, j]) => value(i, j)),
    )
  }
  const list = {
    coords: at,
    shuffled: at.toReversed(),
    repeated: [...at, ...at],
    doubled: at.flatMap((x) => [x, x]),
  }[way]
  return coords(
    shape,
    [list.map(([i]) => i), list.map(([, j]) => j)],
    Float32Array.from(list, ([i, j]) => value(i, j)),
  )
}

const inputsOf = (c: Case, way: Way = 'coords'): RunInputs => ({
  tensors: {
    A: tensor(c, way),
    B: dense(
      [c.n, c.d],
      Float32Array.from({ length: c.n * c.d }, (_, k) => (k % 7) - 3),
    ),
  },
})

const RELATIONS: Readonly<Record<string, (a: number, b: number) => boolean>> = {
  '<': (a, b) => a < b,
  '<=': (a, b) => a <= b,
  '>': (a, b) => a > b,
  '>=': (a, b) => a >= b,
  '==': (a, b) => a === b,
  '!=': (a, b) => a !== b,
}

/** A condition, and whether it holds for what is known. */
interface Condition {
  readonly text: string
  readonly holds: boolean
}
/** Compared with numbers at the border: one less, equal, one more. */
const condition = (known: Readonly<Record<string, number>>): fc.Arbitrary<Condition> =>
  fc.letrec<{ all: Condition; one: Condition }>((tie) => ({
    one: fc
      .tuple(
        fc.constantFrom(...Object.keys(known)),
        fc.constantFrom(...Object.keys(RELATIONS)),
        fc.integer({ min: -1, max: 1 }),
      )
      .map(([name, relation, by]) => {
        const border = Math.max(0, Math.floor(known[name]!) + by)
        return { text: `${name} ${relation} ${border}`, holds: RELATIONS[relation]!(known[name]!, border) }
      }),
    all: fc.oneof(
      { maxDepth: 2, withCrossShrink: true },
      tie('one'),
      fc.constantFrom(
        { text: 'cpu', holds: true },
        { text: 'cuda', holds: false },
        { text: 'webgpu', holds: false },
      ),
      tie('all').map((c) => ({ text: `not (${c.text})`, holds: !c.holds })),
      fc.tuple(tie('all'), tie('all')).map(([a, b]) => ({
        text: `(${a.text}) and (${b.text})`,
        holds: a.holds && b.holds,
      })),
      fc.tuple(tie('all'), tie('all')).map(([a, b]) => ({
        text: `(${a.text}) or (${b.text})`,
        holds: a.holds || b.holds,
      })),
    ),
  })).all

const RUNS = runs(15)

describe('the selected schedule', () => {
  test('the first branch whose condition holds is selected; every branch gives the reference result', async () => {
    const SCHEDULES = ['wide(each = 1)', 'wide(3, 1)', 'blocks(2)', 'plain', 'blocks(1)']
    let chose = 0
    await fc.assert(
      fc.asyncProperty(
        matrices.chain((c) =>
          fc.record({
            c: fc.constant(c),
            way: fc.constantFrom(...WAYS),
            list: fc.array(fc.tuple(condition(expected(c)), fc.constantFrom(...SCHEDULES)), { maxLength: 3 }),
          }),
        ),
        async ({ c, way, list }) => {
          const text = list.map(([x, s]) => `when (${x.text}) ${s}`).join('\n')
          const compiled = await (await choosing(`${text}\notherwise wide(1, 1)`)).build(cpu)
          const prepared = await compiled.bind(...flatInputs(inputsOf(c, way)))
          const right = list.findIndex(([x]) => x.holds)
          if (right >= 0) chose++
          expect(prepared.selection?.text).toBe(right < 0 ? 'wide(1, 1)' : list[right]![1])
          expect(prepared.selection?.rejectedBranches.length).toBe(right < 0 ? list.length : right)
          const v = await prepared.verify()
          expect([v.problems, v.maxAbsoluteError]).toEqual([[], 0])
          prepared.free()
          compiled.release()
        },
      ),
      { numRuns: RUNS },
    )
    if (RUNS >= 15) expect(chose).toBeGreaterThan(0)
  })

  test.each(WAYS)('statistics equal counts: %s', async (way) => {
    const names = Object.keys(expected({ rows: [[]], n: 1, d: 1 }))
    const k = await choosing(`when (${names.map((n) => `${n} >= 0`).join(' and ')}) plain`)
    await fc.assert(
      fc.asyncProperty(matrices, async (c) => {
        const { selection } = await k.choose('cpu', ...flatInputs(inputsOf(c, way)))
        expect(selection.values).toEqual(expected(c))
      }),
      { numRuns: RUNS },
    )
  })

  test('arguments are computed from sizes and statistics, without wrapping', async () => {
    const k = await choosing(`
      when (count(j) * 2000000000 > 3e9) wide(min(32, longest(j) + 1), max(1, d / 4))
      otherwise wide(i32(mean(j)) + 1, 1)`)
    const text = async (rows: number[][], d: number) =>
      (await k.choose('cpu', ...flatInputs(inputsOf({ rows, n: 4, d })))).selection.text
    expect(await text([[0, 1, 2], []], 8)).toBe('wide(4, 2)')
    expect(await text([[0], []], 8)).toBe('wide(1, 1)')
    expect(await text([[0], [1]], 3)).toBe('wide(2, 1)')
    const halves = await choosing(
      'when (count(j) / 2.0 > 1.4 and count(j) / 2 == 1) plain\notherwise blocks(2)',
    )
    expect(
      (await halves.choose('cpu', ...flatInputs(inputsOf({ rows: [[0, 1, 2]], n: 3, d: 1 })))).selection.text,
    ).toBe('plain')
    // In doubles: a tenth in f32 is more than that.
    const tenths = await choosing('when (count(j) >= 0.1 * n) plain\notherwise blocks(2)')
    expect(
      (await tenths.choose('cpu', ...flatInputs(inputsOf({ rows: [[0]], n: 10, d: 1 })))).selection.text,
    ).toBe('plain')
  })

  test('the reason is reported', async () => {
    const k = await choosing(`
      when (cuda) plain
      when (d % 4 == 0 and longest(j) > 2) wide(each = 4)
      otherwise plain`)
    const compiled = await k.build(cpu)
    const prepared = await compiled.bind(...flatInputs(inputsOf({ rows: [[0, 1, 2], []], n: 3, d: 8 })))
    expect(prepared.selection).toMatchObject({
      dispatch: 'auto',
      schedule: 'wide',
      args: [2, 4],
      text: 'wide(each = 4)',
      reason: 'd % 4 == 0 and longest(j) > 2',
      values: { cuda: false, d: 8, 'longest(j)': 3 },
      rejectedBranches: ['plain: cuda does not hold: cuda is false'],
    })
    const other = await compiled.bind(...flatInputs(inputsOf({ rows: [[0, 1], []], n: 3, d: 8 })))
    expect([other.selection?.text, other.selection?.reason]).toEqual(['plain', 'otherwise'])
  })

  test.each([
    '(d == 8 or d == 3) and n == 3',
    'n == 3 and (d == 8 or d == 3)',
    'd == 8 or d == 3 and n == 4',
    'not (d == 3 or d == 4) and n == 3',
  ])('the reason is the condition as written: %s', async (written) => {
    const k = await choosing(`when (${written}) plain\notherwise wide`)
    const prepared = await (await k.build(cpu)).bind(
      ...flatInputs(inputsOf({ rows: [[0, 1, 2], []], n: 3, d: 8 })),
    )
    expect(prepared.selection).toMatchObject({ schedule: 'plain', reason: written })
  })

  test('axes of axes', async () => {
    const p = await load(`kernel sums(m: size, n: size, o: size) {
      axis i = dense_fixed(m)
      axis j = sparse_variable(i, n)
      axis k = sparse_variable(j, o)
      buffer T: f32[i, j, k] in
      buffer s: f32[i]       out
      iterate all [i, j, k] as SRR { s[i] += T[i, j, k] }
    }
    schedule sums.plain {}
    schedule sums.auto choose {
      when (count(j) >= 0 and longest(k) >= 0 and shortest(k) >= 0 and nnz(T) >= 0 and segments(k) >= 0 and empty(j) >= 0) plain
    }`)
    const T = coords(
      [3, 2, 4],
      [
        [0, 0, 0, 2, 2],
        [0, 0, 1, 1, 1],
        [0, 3, 1, 0, 2],
      ],
      [1, 2, 3, 4, 5],
      'f32',
    )
    const values = {
      'count(j)': 3,
      'longest(k)': 2,
      'shortest(k)': 1,
      'nnz(T)': 5,
      'segments(k)': 3,
      'empty(j)': 1,
    }
    const k = p.kernel()
    expect((await k.choose('cpu', { T })).selection.values).toEqual(values)
    const arrays = {
      j: { indptr: Int32Array.of(0, 2, 2, 3), indices: Int32Array.of(0, 1, 1) },
      k: { indptr: Int32Array.of(0, 2, 3, 5), indices: Int32Array.of(0, 3, 1, 0, 2) },
    }
    const S = stored([3, 2, 4], arrays, Float32Array.of(1, 2, 3, 4, 5))
    expect((await k.choose('cpu', { T: S })).selection.values).toEqual(values)
    const { s } = await (await k.build(cpu))({ T: S })
    expect([...s!.values!]).toEqual([6, 0, 9])
  })

  test('random data have the structure that the dispatch assumes', async () => {
    const k = await choosing(
      'when (count(j) % 2 == 0) blocks(2)\nwhen (longest(j) > 0) plain\notherwise plain',
    )
    const compiled = await k.build(cpu)
    const seen = new Set<string | undefined>()
    for (let seed = 0; seed < 8; seed++) {
      const prepared = await compiled.bind({ m: 7, n: 6, d: 2 }, { seed })
      const source = prepared.executable.bound.sources.find((s) => s.name === 'A')!
      expect(prepared.selection?.values['count(j)']).toBe(source.columns[0]!.length)
      expect((await prepared.verify()).ok).toBe(true)
      seen.add(prepared.selection?.schedule ?? undefined)
    }
    expect([...seen].sort()).toEqual(['blocks', 'plain'])
  })
})

describe('variants', () => {
  const BRANCHES = 'when (d % 4 == 0) wide(2, 4)\nwhen (d % 2 == 0) wide(each = 2)\notherwise plain'
  const inputs = (d: number) => inputsOf({ rows: [[0, 2], [1]], n: 3, d })

  test('are compiled once, when the kernel is built', async () => {
    const compile = vi.spyOn(cpu, 'compile')
    try {
      const compiled = await (await choosing(BRANCHES)).build(cpu)
      const all = compile.mock.calls.length
      expect(all).toBe(3)
      await Promise.all([
        compiled.bind(...flatInputs(inputs(4))),
        compiled.bind(...flatInputs(inputs(8))),
        compiled.bind(...flatInputs(inputs(4))),
      ])
      await compiled(...flatInputs(inputs(12)))
      await compiled(...flatInputs(inputs(6)))
      expect(compile.mock.calls.length).toBe(all)
      expect(compiled.variants).toEqual(['wide(2, 4)', 'wide(2, 2)'])
      compiled.release()
      await compiled(...flatInputs(inputs(6)))
      expect(compile.mock.calls.length).toBe(all + 1)
    } finally {
      compile.mockRestore()
    }
  })

  test('a schedule that no fill ratio decides is selected once for each binding', async () => {
    const compiled = await (await choosing(BRANCHES)).build(cpu)
    // Building tries a selection without data.
    const choose = vi.spyOn(Selector.prototype, 'select')
    try {
      await compiled.bind(...flatInputs(inputs(4)))
      expect(choose).toHaveBeenCalledTimes(1)
    } finally {
      choose.mockRestore()
    }
  })

  test('a failed compilation is an error of the build; after a release it is tried again', async () => {
    const fail = (): never => {
      throw new SptError({ code: 'device/compile', message: 'not now', hint: 'try again' })
    }
    const built = vi.spyOn(cpu, 'compile').mockImplementationOnce(fail)
    await expect((await choosing(BRANCHES)).build(cpu)).rejects.toThrow('not now')
    built.mockRestore()
    const compiled = await (await choosing(BRANCHES)).build(cpu)
    compiled.release()
    const compile = vi.spyOn(cpu, 'compile').mockImplementationOnce(fail)
    try {
      await expect(compiled.bind(...flatInputs(inputs(4)))).rejects.toThrow('not now')
    } finally {
      compile.mockRestore()
    }
    expect((await compiled.bind(...flatInputs(inputs(4)))).selection?.text).toBe('wide(2, 4)')
  })

  test('a binding runs the schedule of its own sizes', async () => {
    const compiled = await (await choosing(BRANCHES)).build(cpu)
    const prepared = await compiled.bind(...flatInputs(inputs(8)))
    expect(prepared.selection?.text).toBe('wide(2, 4)')
    await prepared.run()
    expect((await prepared.verify()).ok).toBe(true)
  })

  test('plain arrays take the shapes of the unscheduled kernel', async () => {
    const compiled = await (await choosing(BRANCHES)).build(cpu)
    const A = tensor({ rows: [[0, 2], [1]], n: 3, d: 4 }, 'coords')
    const prepared = await compiled.bind({ A, B: Array.from({ length: 12 }, (_, k) => k) })
    expect(prepared.selection?.values.d).toBe(4)
    expect((await prepared.verify()).ok).toBe(true)
  })
})

describe('a kernel without a selected schedule', () => {
  test('is compiled with the schedule auto, if there is one', async () => {
    const k = await choosing('otherwise plain')
    expect([k.schedules, k.dispatches, k.dispatch]).toEqual([['wide', 'blocks', 'plain'], ['auto'], 'auto'])
    const dispatchOf = (c: Built) => c.dispatch
    expect(dispatchOf(await k.build(cpu))).toBe('auto')
    expect(dispatchOf(await k.build(cpu, { auto: false }))).toBe(null)
    // `plain` has no steps, so the auto-scheduler selects.
    expect(dispatchOf(await k.schedule('plain').build(cpu))).toBe(null)
    expect(dispatchOf(await k.schedule('wide').build(cpu))).toBe(null)
    expect(k.schedule('plain').dispatch).toBe(null)
    const prepared = await (await k.build(cpu, { auto: false })).bind(
      ...flatInputs(inputsOf({ rows: [[0]], n: 1, d: 1 })),
    )
    expect(prepared.selection).toBe(null)
  })

  test('has no steps, stages or texts', async () => {
    const open = (await choosing('otherwise plain')).schedule('auto')
    for (const use of [
      () => open.trace,
      () => open.show(2),
      () => open.emit('cuda'),
      () => open.unroll('j'),
      () => open.steps('auto'),
      () => open.compilation,
    ])
      expect(await complaint(use)).toBe(
        'choose/open: mul.auto is chosen when data are bound, and has no steps before',
      )
    const compiled = await open.build(cpu)
    expect(await complaint(() => compiled.estimateBytes({}))).toContain('bind/missing-size')
    for (const use of [() => compiled.program, () => compiled.compilation])
      expect(await complaint(use)).toBe('choose/open: mul.auto is chosen when data are bound')
  })

  test('can select a schedule from sizes and statistics alone', async () => {
    const k = await choosing('when (cuda and d % 4 == 0 and longest(j) > 512) blocks(2)\notherwise plain')
    const given = { params: { d: 8 }, statistics: { 'longest(j)': 513 } }
    const { kernel, selection } = await k.choose('cuda', ...flatInputs(given))
    expect([selection.text, kernel.trace]).toEqual(['blocks(2)', ['A as bsr(2)']])
    expect((await k.choose('webgpu', {})).selection.text).toBe('plain')
    // Nothing is asked that cannot change the answer.
    expect((await k.choose('cuda', { d: 6 })).selection.text).toBe('plain')
    expect(await complaint(() => k.choose('cuda', {}))).toContain(
      'bind/missing-size: missing size d (schedule auto depends on it)',
    )
    expect(await complaint(() => k.choose('cuda', { d: 8 }))).toContain('choose/unknown-statistic')
    expect(await complaint(() => k.choose('cuda', {}, { statistics: { 'longest(k)': 3 } }))).toContain(
      'mul.auto does not depend on longest(k)',
    )
    expect(await complaint(() => k.schedule('plain').choose('cuda', {}))).toContain('choose/decided')
  })
})

describe('parameters', () => {
  const PARAMS = '(least, b = 2, both = least * b)'
  /** Branches over them, and their names as they are or with numbers in their places. */
  const branches = (of: (name: string) => string | number) => `
    when (longest(j) > ${of('both')}) blocks(${of('b')})
    when (d % ${of('b')} == 0 and (cuda or count(j) >= ${of('least')})) wide(each = ${of('b')})
    when (d > ${of('least')} - ${of('both')}) wide(max(1, ${of('both')}), 1)
    otherwise plain`

  test('select the same branch as constants in their place', async () => {
    const k = await choosing(
      branches((n) => n),
      PARAMS,
    )
    const seen = new Set<string>()
    await fc.assert(
      fc.asyncProperty(
        matrices,
        fc.integer({ min: 1, max: 4 }),
        fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }),
        fc.option(fc.integer({ min: 0, max: 5 }), { nil: undefined }),
        async (c, least, b, both) => {
          const numbers: Record<string, number> = { least, b: b ?? 2, both: both ?? least * (b ?? 2) }
          const written = await choosing(branches((n) => numbers[n]!))
          const { selection, kernel } = await k
            .schedule('auto', least, b, both)
            .choose('cpu', ...flatInputs(inputsOf(c)))
          const other = await written.choose('cpu', ...flatInputs(inputsOf(c)))
          expect([selection.schedule, selection.args, selection.text]).toEqual([
            other.selection.schedule,
            other.selection.args,
            other.selection.text,
          ])
          expect(kernel.trace).toEqual(other.kernel.trace)
          // What was asked for, parameters included.
          const { values } = selection
          expect(values).toMatchObject(other.selection.values)
          for (const n of Object.keys(values))
            if (n in numbers) expect([n, values[n]]).toEqual([n, numbers[n]])
          seen.add(selection.schedule!)
        },
      ),
      { numRuns: RUNS },
    )
    if (LONG) expect([...seen].sort()).toEqual(['blocks', 'plain', 'wide'])
  })

  test('each list of arguments is a separate dispatch', async () => {
    const k = await choosing('when (longest(j) >= b) blocks(b)\notherwise plain', '(b = 2)')
    const inputs = inputsOf({ rows: [[0, 1, 2], []], n: 3, d: 2 })
    const [usual, one, four] = await Promise.all([
      k.build(cpu),
      k.schedule('auto', 1).build(cpu),
      k.schedule('auto', 4).build(cpu),
    ])
    const texts: (string | undefined)[][] = []
    for (const compiled of [usual, one, four, usual]) {
      const prepared = await compiled.bind(...flatInputs(inputs))
      texts.push([prepared.selection?.dispatch, prepared.selection?.text, ...(compiled as Built).variants])
      expect((await prepared.verify()).problems).toEqual([])
    }
    expect(texts).toEqual([
      ['auto', 'blocks(2)', 'blocks(2)'],
      ['auto(1)', 'blocks(1)', 'blocks(1)'],
      ['auto(4)', 'plain', 'plain'],
      ['auto', 'blocks(2)', 'blocks(2)'],
    ])
    expect(
      (await k.schedule('auto', 4).choose('cpu', ...flatInputs(inputs))).selection.rejectedBranches,
    ).toEqual(['blocks: longest(j) >= b does not hold: longest(j) is 3, b is 4'])
    expect(k.parameters('auto')).toEqual([{ name: 'b', required: false }])
    expect((await choosing('otherwise plain', '(b, c = 2)')).schedule('auto', 1, 3).dispatch).toBe('auto')
  })

  test('wrong arguments are reported as for schedules', async () => {
    const k = await choosing('otherwise blocks(b)', '(b)')
    const wrong = (name: string, ...args: never[]) =>
      complaint(() => k.schedule(name, ...args)) as Promise<string>
    for (const args of [[], [undefined], [undefined, 2], [1, 2]] as never[][])
      expect(await wrong('auto', ...args)).toBe(
        (await wrong('blocks', ...args)).replace('schedule blocks', 'schedule auto'),
      )
    for (const args of [['2'], [2.5], [Number.NaN], [null]] as never[][])
      expect(await wrong('auto', ...args)).toMatch(/^schedule\/argument: an argument is not an integer/)
    // Where nothing else is said, it is what would have to be given an argument.
    expect(k.dispatch).toBe('auto')
    expect(await complaint(() => k.build(cpu))).toBe('schedule/arguments: schedule auto needs a value for b')
    expect(await complaint(() => k.schedule('auto', 0).choose('cpu', {}))).toMatch(/^format/)
  })
})

test('the features of a CUDA device', async () => {
  const k = await choosing(
    'when (capability >= 9.0) blocks(2)\nwhen (cuda and capability >= 8.0) blocks(1)\notherwise plain',
  )
  const on = async (kind: Device['kind'], ...features: string[]) =>
    (await k.choose({ kind, features: new Set(features) }, {})).selection.text
  expect(await on('cuda', 'f16', 'sm_90', 'bf16')).toBe('blocks(2)')
  expect(await on('cuda', 'sm_89')).toBe('blocks(1)')
  expect(await on('cuda', 'sm_120')).toBe('blocks(2)')
  expect(await on('cuda', 'sm_75')).toBe('plain')
  expect(await on('webgpu')).toBe('plain')
  expect((await k.choose('cuda', {}, { capability: 8 })).selection.text).toBe('blocks(1)')
  // A device knows its own.
  const device = { kind: 'cuda', features: new Set(['sm_90']) } as const
  expect((await k.choose(device, {}, { capability: 8 })).selection.text).toBe('blocks(2)')
  expect(await complaint(() => k.choose('cuda', {}))).toContain('choose/unknown-capability')
})

describe('how many multiprocessors the device has', () => {
  const choice = () =>
    choosing(
      'when (cuda and m <= 2 * processors) blocks(ceildiv(processors, 8))\nwhen (m > 3 and processors > 3) wide\notherwise plain',
    )

  test('is the number that a CUDA device reports', async () => {
    const k = await choice()
    const device = (processors?: number) =>
      ({ kind: 'cuda', features: new Set<string>(), limits: processors ? { processors } : {} }) as const
    const on = async (m: number, processors?: number, given?: number) =>
      (await k.choose(device(processors), { m, d: 4 }, { processors: given })).selection
    expect((await on(264, 132)).text).toBe('blocks(17)')
    expect((await on(265, 132)).text).toBe('wide')
    expect((await on(264, 132)).values).toEqual({ cuda: true, m: 264, processors: 132 })
    // A device knows its own.
    expect((await on(5, 2, 132)).text).toBe('plain')
    expect((await on(5, undefined, 132)).text).toBe('blocks(17)')
    expect(await complaint(() => on(5))).toContain('choose/unknown-processors')
  })

  test('can be passed if only the device kind is known', async () => {
    const k = await choice()
    const given = { params: { m: 9, d: 4 }, processors: 5 }
    expect((await k.choose('cuda', ...flatInputs(given))).selection.text).toBe('blocks(1)')
    expect((await k.choose('cuda', ...flatInputs({ ...given, processors: 4 }))).selection.text).toBe('wide')
    expect(await complaint(() => k.choose('cuda', { m: 9 }))).toBe(
      'choose/unknown-processors: missing number of SMs (required by the dispatch)',
    )
  })

  test('is unknown for other devices, and required only if it matters', async () => {
    const k = await choice()
    expect((await k.choose('webgpu', { m: 3 })).selection.text).toBe('plain')
    for (const on of ['webgpu', 'cpu', cpu] as const) {
      expect(await complaint(() => k.choose(on, { m: 9, d: 4 }))).toContain(
        `choose/unknown-processors: ${on === 'webgpu' ? on : 'cpu'} devices do not report the number of SMs (required by the dispatch)`,
      )
      const { selection } = await k.choose(on, { m: 9, d: 4 }, { processors: 4 })
      expect(selection.text).toBe('wide')
    }
  })

  test('a size of that name takes precedence', async () => {
    const text = `kernel fill(processors: size) {
      axis i = dense_fixed(processors)
      buffer C: f32[i] out
      iterate set [i] as S { C[i] = 1 }
    }
    schedule fill.four { split i by 4 }
    schedule fill.auto choose { when (processors > 3) four }`
    const k = (await load(text)).kernel()
    const device = { kind: 'cuda', features: new Set<string>(), limits: { processors: 132 } } as const
    const on = (processors: number) => k.choose(device, { processors })
    expect((await on(4)).selection.text).toBe('four')
    expect(await complaint(() => on(3))).toContain('choose/no-match')
  })
})

describe('features of the device', () => {
  const MATRIX = 'subgroup_matrix(16, 16, 16, f16, f32)'
  const choice = () =>
    choosing(`when (has(${MATRIX}) and has(f16)) blocks(2)
      when (not cpu and has(subgroup_size(32))) blocks(3)
      when (not cuda or not has(async_copy)) wide(each = select(has(f64), 2, 1))
      otherwise plain`)

  test('are reported by the device', async () => {
    const k = await choice()
    const on = async (kind: Device['kind'], ...features: string[]) =>
      (await k.choose({ kind, features: new Set(features) }, { d: 4 }, { features: [MATRIX, 'f16'] }))
        .selection
    expect((await on('webgpu', MATRIX, 'f16')).text).toBe('blocks(2)')
    expect((await on('webgpu', MATRIX, 'f16')).values).toEqual({ [`has(${MATRIX})`]: true, 'has(f16)': true })
    expect((await on('webgpu', MATRIX, 'subgroup_size(32)')).text).toBe('blocks(3)')
    expect((await on('webgpu', 'f16', 'subgroup_size(16)')).text).toBe('wide(each = 1)')
    expect((await on('webgpu', 'f16', 'subgroup_matrix(8, 8, 8, f16, f32)')).text).toBe('wide(each = 1)')
    expect((await on('cuda', 'f64')).text).toBe('wide(each = 2)')
    expect((await on('cuda', 'async_copy')).text).toBe('plain')
    expect((await k.choose(cpu, { d: 4 })).selection.text).toBe('wide(each = 2)')
  })

  test('can be passed, all of them, if only the device kind is known', async () => {
    const k = await choice()
    const given = async (kind: Device['kind'], ...features: string[]) =>
      (await k.choose(kind, { d: 4 }, { features })).selection.text
    expect(await given('webgpu', ' subgroup_matrix ( 16,16 ,16,f16,  f32)', 'f16')).toBe('blocks(2)')
    expect(await given('cuda', 'f16')).toBe('wide(each = 1)')
    expect(await given('cuda', 'f16', 'async_copy')).toBe('plain')
    // The cpu device has what it has.
    expect(await given('cpu', MATRIX, 'f16')).toBe('wide(each = 2)')
    expect((await k.choose('cpu', { d: 4 })).selection.text).toBe('wide(each = 2)')
    expect(await complaint(() => k.choose('webgpu', {}))).toContain(
      `choose/unknown-feature: missing features of the device (the dispatch depends on ${MATRIX})`,
    )
    expect(await complaint(() => given('webgpu', 'subgroup'))).toBe(
      'choose/unknown-feature: no device has a feature subgroup',
    )
  })
})

describe('mistakes', () => {
  const refused = async (branches: string, inputs: RunInputs) => {
    const compiled = await (await choosing(branches)).build(cpu)
    const e: unknown = await compiled.bind(...flatInputs(inputs)).catch((x: unknown) => x)
    if (!(e instanceof SptError)) throw e
    return e.diagnostics[0]!
  }
  const two = inputsOf({ rows: [[0, 1], []], n: 2, d: 6 })

  test('no condition holds: the message says why each fails', async () => {
    const d = await refused('when (d > 6) plain\nwhen (cpu and longest(j) == 3) blocks(2)', two)
    expect([d.code, d.notes]).toEqual([
      'choose/no-match',
      ['plain: d > 6 does not hold: d is 6', 'blocks: longest(j) == 3 does not hold: longest(j) is 2'],
    ])
    expect(d.span).toBeDefined()
  })

  test('a schedule that does not support these sizes', async () => {
    const d = await refused('when (d > 5) wide(each = 4)', two)
    expect([d.code, d.hint]).toEqual(['choose/requirement', 'when (d > 5 and d % 4 == 0)'])
    expect(d.message).toBe('mul.auto chooses wide(each = 4), which requires d % 4 == 0, and d is 6')
    expect([d.span, d.labels?.length]).toEqual([expect.anything(), 1])
  })

  test('arguments that give an invalid step', async () => {
    const d = await refused('otherwise wide(1, d / 10)', two)
    expect([d.code, d.labels?.at(-1)?.text]).toEqual(['schedule/bad-requirement', 'chosen here'])
  })

  test('a division by 0', async () => {
    const d = await refused('when (count(j) / (d - 6) > 0) plain', two)
    expect([d.code, d.hint]).toEqual(['choose/division', 'test the divisor first: `d - 6 != 0 and …`'])
    const guarded = 'when (d > 6 and count(j) / (d - 6) > 0) plain\notherwise plain'
    expect((await (await choosing(guarded)).choose('cpu', ...flatInputs(two))).selection.reason).toBe(
      'otherwise',
    )
    for (const inner of [
      'cuda or (d > 6 and count(j) / (d - 6) > 0)',
      'not (d == 6 or count(j) / (d - 6) > 0)',
    ]) {
      const k = await choosing(`when (${inner}) blocks(2)\notherwise plain`)
      expect((await k.choose('cpu', ...flatInputs(two))).selection.text, inner).toBe('plain')
    }
  })

  test('invalid arrays are reported by binding', async () => {
    const bad = (indptr: unknown) =>
      refused('when (longest(j) > 1) plain\notherwise plain', {
        ...two,
        tensors: {
          ...two.tensors,
          A: stored([2, 2], { j: { indptr, indices: Int32Array.of(0, 1) } as never }, Float32Array.of(1, 2)),
        },
      })
    expect((await bad(Int32Array.of(0, 2, 1))).code).toBe('bind/indptr-order')
    expect((await bad(Int32Array.of(0, 2))).code).toBe('bind/indptr-length')
    expect(() => bad([0, 'one', 2])).toThrow('entry 1 of indptr of axis j is "one"')
    expect((await bad(undefined)).code).toBe('bind/missing-array')
    const A = (indptr: readonly number[], indices: readonly number[]) =>
      stored(
        [2, 2],
        { j: { indptr: Int32Array.from(indptr), indices: Int32Array.from(indices) } },
        Float32Array.of(1, 2),
      )
    const turned = { ...two, tensors: { ...two.tensors, A: A([0, 3, 2], [0, 1]) } }
    expect((await refused('when (shortest(j) >= 0) plain', turned)).code).toBe('bind/indptr-order')
    // Choosing by offsets looks at nothing else; binding does.
    const beyond = { ...two, tensors: { ...two.tensors, A: A([0, 1, 2], [0, 7]) } }
    const k = await choosing('when (longest(j) == 1) plain')
    expect((await k.choose('cpu', ...flatInputs(beyond))).selection.text).toBe('plain')
    expect((await refused('when (longest(j) == 1) plain', beyond)).code).toBe('bind/index-range')
  })

  test('calls that TypeScript does not check', async () => {
    const k = (await choosing(
      'when (d > 3 and longest(j) > 2) plain\notherwise blocks(2)',
    )) as never as Record<
      'choose' | 'build',
      (...args: unknown[]) => Promise<Record<'choose' | 'bind', (...args: unknown[]) => Promise<unknown>>>
    >
    const compiled = await k.build(cpu)
    for (const call of [
      () => k.choose(),
      () => k.choose('gpu', {}),
      () => k.choose({ kind: 'cuda' }, {}),
      () => k.choose('cpu'),
      () => k.choose('cpu', [1]),
      () => k.choose('cpu', { params: { d: 4 } }),
      () => k.choose('cpu', { A: 7n }),
      () => k.choose('cpu', {}, { statistics: { 'longest(j)': 'many' } }),
      () => k.choose('cpu', {}, { statistics: { 'longest(j)': -1 } }),
      () => k.choose('cpu', {}, { resident: 7 }),
      () => k.choose('cuda', {}, { capability: '9.0' }),
      () => k.choose('cuda', {}, { processors: '132' }),
      () => k.choose('cuda', {}, { processors: 0 }),
      () => k.choose('cuda', {}, { processors: 2.5 }),
      () => k.choose('webgpu', {}, { features: 'f16' }),
      () => k.choose('webgpu', {}, { features: [16] }),
      () => compiled.choose(),
      () => compiled.bind(),
      () => compiled.bind({}, { seed: 'x' }),
    ])
      expect(await complaint(call), String(call)).toMatch(/^api\/argument/)
  })

  test('values that are not sizes', async () => {
    const A = tensor({ rows: [[0, 1], []], n: 2, d: 1 }, 'coords')
    const choice = 'when (longest(j) > 2 and m > 0) plain\notherwise plain'
    for (const m of [-1, 2.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 40])
      expect((await refused(choice, { tensors: { A }, params: { m, d: 1 }, seed: 0 })).code).toMatch(
        /^bind\//,
      )
  })

  test('wrong bindings are reported by binding', async () => {
    expect((await refused('otherwise plain', { ...two, params: { d: 5 } })).code).toBe('bind/size-mismatch')
    expect((await refused('otherwise plain', { tensors: { Z: [1] } })).code).toMatch(/^bind\//)
    expect((await refused('when (longest(j) > 0) plain', { tensors: { B: two.tensors!.B! } })).code).toBe(
      'choose/unknown-statistic',
    )
  })
})

test.each([
  [{ m: 4 }, 'bind/size-mismatch: size m is 4 by the value given, and 6 by dimension 0 of A'],
  [{ n: 4 }, 'bind/size-mismatch: size n is 4 by the value given, and 5 by dimension 1 of A'],
  [{ m: -1 }, 'bind/size-range: size m is -1'],
])('sizes that contradict the bindings are rejected: %j', async (sizes, expected) => {
  const k = await choosing('  when (m < 5) plain\n  otherwise wide')
  const tensors = {
    A: coords(
      [6, 5],
      [
        [0, 5],
        [0, 4],
      ],
      [1, 2],
    ),
  }
  const work = k.schedule('auto').choose('cpu', { ...tensors, d: 4, ...sizes })
  expect(await complaint(() => work)).toContain(expected)
})

test('a dispatch of a wholly imported file calls schedules of a third file', async () => {
  const files: Readonly<Record<string, string>> = {
    'third.spt': `kernel k(n: size) {
  axis i = dense_fixed(n)
  buffer x: f32[i] in
  buffer y: f32[i] out
  iterate c [i] as S { y[i] = 2 * x[i] }
}
schedule k.by(b = 2) { split i by b -> (io, ii) }
schedule k.plain { }`,
    'choice.spt': `import "./third.spt"
schedule k.twice { use by(4) }
schedule k.pick choose { when (n >= 100) twice  when (n >= 10) by(8)  otherwise plain }`,
    'main.spt': `import "./third.spt"
import "./choice.spt"
schedule k.auto choose { when (n >= 1000) by(16)  otherwise pick }`,
  }
  const program = await load('main.spt', { read: async (path) => files[path.split('/').at(-1)!]! })
  const texts = [5, 20, 200, 2000].map(async (n) => {
    const { selection, kernel } = await program.kernel('k').choose('cpu', { n })
    return [selection.text, selection.declaredBy, kernel.trace.length]
  })
  expect(await Promise.all(texts)).toEqual([
    ['plain', 'k.pick', 0],
    ['by(8)', 'k.pick', 1],
    ['twice', 'k.pick', 1],
    ['by(16)', null, 1],
  ])
})
