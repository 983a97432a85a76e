/** Families of plans: written as JSON, loaded, and selected by sizes and statistics as the dispatch selects. */
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { SptError, valueOrError } from '../../src/ast/diagnostics/diagnostic.ts'
import type { Progress } from '../../src/ast/work.ts'
import {
  coords,
  type Device,
  dense,
  devices,
  load,
  loadPlan,
  readTensor,
  writeTensor,
} from '../../src/node.ts'
import type { PlanFamily } from '../../src/plan/schema.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { distil } from '../../src/search/choice/distil.ts'
import { instantiate as inPages } from '../../src/web/formats/formats.ts'
import { Folder, spt } from '../cli/support.ts'
import { KERNELS, LIVE } from '../properties/live-gen.ts'
import { asHardware } from '../support/hardware.ts'

const PROGRAM = `
import "sparsetile/kernels/formats.spt"
import "sparsetile/kernels/formats-composed.spt"
kernel mul(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis k = dense_fixed(n)
  axis f = dense_fixed(d)
  buffer A: f32[i, j] in
  buffer B: f32[k, f] in
  buffer C: f32[i, f] out
  iterate sum [i, j, f] as SRS { C[i, f] += A[i, j] * B[j, f] }
}
schedule mul.plain { reorder (i, j, f) }
schedule mul.outer { reorder (i, f, j) }
schedule mul.tiled(t = 4) { split f by t -> (fo, fi) }
schedule mul.parts { A as hyb(1, 1) }
schedule mul.rows { A as bsr(2) }
schedule mul.even { require d % 2 == 0 }
`
const SCHEDULES = ['plain', 'outer', 'tiled(2)', 'tiled', 'parts', 'rows', 'even']

const fact = fc.record({
  of: fc.constantFrom(
    'm',
    'd',
    'nnz(A)',
    'longest(j)',
    'mean(j)',
    'empty(j)',
    'count(j)',
    'longest(j) - shortest(j)',
    'mean(j) / d',
    'i32(mean(j))',
    '(m + d) / 2',
    'd % 3',
    'select(m > 2, mean(j) / m, d / 2)',
    '4 * fill_ratio(A, bsr(2))',
    'fill_ratio(A, panels(2, 1)) * d',
  ),
  op: fc.constantFrom('>', '<=', '==', '!='),
  than: fc.constantFrom('0', '1', '2', '4', 'm', '2 * d', 'segments(j)', 'mean(j)'),
  device: fc.constantFrom('', 'cpu and ', '(webgpu or d > 2) and ', 'not cuda and '),
})
const condition = fact.map(({ of, op, than, device }) => `${device}${of} ${op} ${than}`)
const family = fc.record({
  branches: fc.array(fc.tuple(condition, fc.constantFrom(...SCHEDULES)), { minLength: 1, maxLength: 4 }),
  last: fc.constantFrom(...SCHEDULES.slice(0, 6)),
})
const data = fc.record({
  m: fc.integer({ min: 1, max: 6 }),
  n: fc.integer({ min: 1, max: 6 }),
  d: fc.integer({ min: 1, max: 6 }),
  at: fc.uniqueArray(fc.integer({ min: 0, max: 35 }), { maxLength: 20 }),
})

const textOf = ({
  branches,
  last,
}: {
  branches: readonly (readonly [string, string])[]
  last: string
}): string =>
  `${PROGRAM}schedule mul.auto choose {\n${branches.map(([when, s]) => `  when (${when}) ${s}\n`).join('')}  otherwise ${last}\n}\n`

const codeOf = (work: () => unknown): Promise<unknown> =>
  Promise.resolve()
    .then(work)
    .then(
      () => null,
      (e: unknown) => (e instanceof SptError ? e.diagnostics[0]!.code : Promise.reject(e)),
    )

describe.each(['cpu', 'webgpu'] as const)('on %s', (kind) => {
  const opened = devices[kind]()
  afterAll(async () => (await opened).dispose())

  test('the JSON selects and computes as the dispatch does', async () => {
    const device: Device = await opened
    let [drawn, compared] = [0, 0]
    await fc.assert(
      fc.asyncProperty(family, fc.array(data, { minLength: 3, maxLength: 3 }), async (f, cases) => {
        const kernel = (await load(textOf(f))).kernel('mul').schedule('auto')
        const live = await kernel.build(device)
        const json = JSON.parse(JSON.stringify(live.plan)) as PlanFamily
        const loaded = await loadPlan(json, device)
        const page = kind === 'cpu' ? await inPages(json) : null
        for (const { m, n, d, at } of cases) {
          drawn++
          const cells = at.filter((x) => x < m * n).sort((a, b) => a - b)
          const A = coords(
            [m, n],
            [cells.map((x) => Math.floor(x / n)), cells.map((x) => x % n)],
            cells.map((_, k) => k + 1),
          )
          const B = dense(
            [n, d],
            Float32Array.from({ length: n * d }, (_, k) => k % 7),
          )
          const own = await codeOf(() => live.choose({ A, B }))
          const bound = await Promise.all(
            [live, loaded].map((x) => x.bind({ A, B }).catch((e: unknown) => e)),
          )
          if (own !== null) {
            for (const b of bound) expect(b).toBeInstanceOf(SptError)
            await expect(page?.({ A, B }) ?? Promise.reject()).rejects.not.toBeInstanceOf(TypeError)
            continue
          }
          const [expected, result] = bound as [
            Awaited<ReturnType<typeof live.bind>>,
            Awaited<ReturnType<typeof live.bind>>,
          ]
          expect(result.selection!.text).toBe(expected.selection!.text)
          // Conditions that hold for all data are left out.
          if (expected.selection!.reason === 'otherwise') expect(result.selection!.reason).toBe('otherwise')
          expect(loaded.plan).toEqual(json)
          for (const b of [expected, result]) await b.run()
          expect((await result.get('C')).values).toEqual((await expected.get('C')).values)
          const inPage = await page?.({ A, B })
          if (inPage) expect(inPage.C!.values).toEqual((await expected.get('C')).values)
          for (const b of [expected, result]) b.free()
          compared++
        }
        expect(loaded.dispatch).toBe('auto')
        for (const x of [live, loaded]) x.release()
      }),
      { numRuns: kind === 'cpu' ? 40 : 6 },
    )
    expect(2 * compared).toBeGreaterThan(drawn)
  })
})

const ROWS = `${PROGRAM}schedule mul.auto choose { when (cpu and d > 2) tiled(2) otherwise outer }\n`

test('malformed families are rejected with the path of the field', async () => {
  const device = await devices.cpu()
  const plan = (await (await load(ROWS)).kernel('mul').build(device)).plan as PlanFamily
  expect(plan.choose.branches.map((b) => [b.when, b.schedule])).toEqual([
    [[['gt', 'd', 2]], 'tiled(2)'],
    [[], 'outer'],
  ])
  const { choose } = plan
  const [first, second] = choose.branches
  for (const [change, path] of [
    [{ choose: 3 }, 'choose'],
    [{ choose: { ...choose, branches: [] } }, 'choose.branches'],
    [{ choose: { ...choose, branches: [{ ...first, plan: 2 }] } }, 'choose.branches[0].plan'],
    [{ choose: { ...choose, branches: [second, { ...first, when: ['e'] }] } }, 'choose.branches[1].when'],
    [{ choose: { ...choose, statistics: { x: { kind: 'nnz', of: 'Q' } } } }, 'choose.statistics.x.of'],
    [{ choose: { ...choose, statistics: { x: { kind: 'odd', of: 'A' } } } }, 'choose.statistics.x.kind'],
    [{ choose: { ...choose, binding: null } }, 'binding'],
    [{ plans: [{ ...plan.plans[0], kernel: 7 }, plan.plans[1]] }, 'plans[0].kernel of the plan'],
    [{ plans: [plan.plans[0], { ...plan.plans[1], binding: 0 }] }, 'plans[1].binding of the plan'],
    [{ plans: [plan.plans[0], { ...plan.plans[1], steps: [{ clear: 'Q' }] }] }, 'plans[1].steps[0].clear of'],
    [{ plans: [plan.plans[0], 0] }, 'plans[1] of the plan is 0'],
    [{ choose: { ...choose, branches: [{ ...first, when: [['load', 'd', [0]]] }] } }, 'branches[0].when of'],
  ] as const) {
    const error = await loadPlan({ ...plan, ...change } as never, device).catch((e: unknown) => e)
    expect(error, path).toBeInstanceOf(SptError)
    expect((error as SptError).message).toContain(path)
  }
  await device.dispose()
})

test('distil rejects options that select nothing', async () => {
  const kernel = (await load('kernels/spmm.spt')).kernel('spmm').schedule('auto')
  for (const options of [{ inputs: [] }, { inputs: 3 }, { plans: 0 }, { plans: 1.5 }, { plan: 3 }]) {
    const failure = await distil(kernel, 'cpu', options as object).catch((e: unknown) => e)
    expect(failure).toBeInstanceOf(SptError)
    expect((failure as SptError).diagnostics[0]!.code).toMatch(/^api\/(argument|unknown-option)$/)
  }
})

test('a dispatch that depends on data is not a family, and a distilled one is', async () => {
  const cpu = await devices.cpu()
  const [open, tiles] = ['otherwise fastest { plain; tiled(2); outer }', 'otherwise tiled(d)'].map(
    (branch) => `${PROGRAM}schedule mul.auto choose { ${branch} }\n`,
  )
  const random = (rows: number, d: number) => ({
    tensors: {
      A: coords(
        [rows, rows],
        [
          [0, 1, rows - 1],
          [1, 0, 2],
        ],
        [1, 2, 3],
      ),
    },
    params: { d },
  })
  const inputs = [4, 8, 16, 32, 64].flatMap((rows) => [1, 2, 8, 64].map((d) => random(rows, d)))
  for (const text of [open!, tiles!]) {
    const kernel = (await load(text)).kernel('mul').schedule('auto')
    const live = await kernel.build(cpu)
    expect(await codeOf(() => live.plan)).toBe('choose/open')
    const distilled = await distil(kernel, cpu, { inputs, plans: 3 })
    const fn = await loadPlan(
      JSON.parse(JSON.stringify((await distilled.build(cpu)).plan)) as PlanFamily,
      cpu,
    )
    for (const { tensors, params } of inputs) {
      const [own] = [await live.choose({ ...tensors, ...params })]
      const chosen = await fn.choose({ ...tensors, ...params })
      expect([
        'plain',
        'outer',
        own.selection!.text,
        'tiled(1)',
        'tiled(64)',
        'tiled(8)',
        'tiled(2)',
      ]).toContain(chosen.selection!.text)
    }
  }
  await cpu.dispose()
})

test.each(['cpu', 'webgpu'] as const)(
  'fill ratios that only runs measure are conditions of plans with branches on %s',
  async (kind) => {
    const device = kind === 'cpu' ? await devices.cpu() : asHardware(await createNodeWebGpu())
    const text = (condition: string) => `${LIVE.panels.text}
${KERNELS.left}
schedule product.live { A as panels(2, 2) live in place }
schedule product.plain { split mul.j by 2 }
schedule product.whole {}
schedule product.auto choose {
  when (${condition}) live
  when (n > 4) whole
  otherwise plain
}`
    const planOf = async (condition: string) =>
      (await (await load(text(condition))).kernel().schedule('auto').build(device)).plan
    const branches = (otherwise: string, when = 'fill_ratio(A, panels(2, 2)) < 0.5') => ({
      schedules: [{ text: 'live', when }, { text: otherwise }],
    })
    const always = text('fill_ratio(A, panels(2, 2)) < 0.5').replace('  when (n > 4) whole\n', '')
    expect((await (await load(always)).kernel().build(device)).plan).toMatchObject({
      branches: branches('plain'),
    })
    // Conditions over sizes select the plan, and each run evaluates the others.
    const family = (await planOf('m > 1 and fill_ratio(A, panels(2, 2)) < 0.5')) as PlanFamily
    expect(family.choose.branches.map((b) => [b.when.length, b.schedule, b.plan])).toEqual([
      [2, 'live or whole', 0],
      [1, 'live or plain', 1],
      [1, 'whole', 2],
      [0, 'plain', 3],
    ])
    expect(family.plans.map((p) => p.branches)).toMatchObject([
      branches('whole'),
      branches('plain'),
      ...[undefined, undefined],
    ])
    expect(family.choose.statistics).toEqual({})
    const mixed = (await planOf('fill_ratio(A, panels(2, 2)) * 8 < m')) as PlanFamily
    expect(mixed.plans.map((p) => p.branches)).toMatchObject([
      branches('whole', 'fill_ratio(A, panels(2, 2)) * 8 < f64(m)'),
      branches('plain', 'fill_ratio(A, panels(2, 2)) * 8 < f64(m)'),
    ])
    for (const plan of [family, mixed]) {
      const fn = await loadPlan(JSON.parse(JSON.stringify(plan)) as PlanFamily, device)
      for (const [m, n, share] of [
        [4, 2, 0],
        [4, 6, 0],
        [4, 2, 1],
        [4, 6, 1],
        [1, 2, 0],
        [1, 6, 1],
      ] as const) {
        const A = dense([m, 4], new Float32Array(4 * m).fill(share))
        const binding = await fn.bind({ A, B: dense([4, n], new Float32Array(4 * n).fill(1)) })
        await binding.run()
        expect((await binding.get('C')).values).toEqual(new Float32Array(m * n).fill(4 * share))
        await binding.awaitMeasurements()
        const isLive = plan === family ? m > 1 && share === 0 : share * 8 < m
        expect(binding.selection!.text).toBe(isLive ? 'live' : n > 4 ? 'whole' : 'plain')
        binding.free()
      }
    }
    await device.dispose()
  },
)

test('fill ratios that only runs measure are not conditions of distilled families', async () => {
  const cpu = await devices.cpu()
  const text = `${LIVE.panels.text}
${KERNELS.left}
schedule product.live { A as panels(2, 2) live in place }
schedule product.plain { split mul.j by 2 }
schedule product.auto choose { when (m > 1 and fill_ratio(A, panels(2, 2)) < 0.5) live otherwise plain }`
  const kernel = (await load(text)).kernel().schedule('auto')
  const inputs = [{ tensors: { A: dense([4, 4], new Float32Array(16)) }, params: { k: 2 } }]
  const error = await valueOrError<unknown>(() => distil(kernel, cpu, { inputs }))
  expect(error instanceof SptError && error.diagnostics[0]).toMatchObject({
    code: 'choose/open',
    message: 'product.auto is not a family of plans: each run measures fill_ratio(A, panels(2, 2))',
    hint: "build(device, { sizes: { m: … } }), or write the plan of one schedule: live, plain (--schedule 'live' on the command line)",
  })
  const { plan } = await kernel.build(cpu, { sizes: { m: 4 } })
  expect(plan).toMatchObject({ branches: { schedules: [{ text: 'live' }, { text: 'plain' }] } })
  await cpu.dispose()
})

test('spt emit writes a family, and spt run selects from it', async () => {
  const dir = new Folder()
  const [program, file] = [dir.file('mul.spt', ROWS), dir.at('mul.json')]
  const emitted = await spt([
    'emit',
    program,
    '--kernel',
    'mul',
    '--schedule',
    'auto',
    '--target',
    'plan',
    '--out',
    file,
  ])
  expect([emitted.code, emitted.err]).toEqual([0, expect.stringContaining('wrote')])
  await writeTensor(
    dir.at('A.mtx'),
    coords(
      [2, 3],
      [
        [0, 1],
        [2, 0],
      ],
      [5, 6],
    ),
  )
  for (const [d, schedule] of [
    [2, 'outer'],
    [4, 'tiled(2)'],
  ] as const) {
    await writeTensor(dir.at('B.npy'), dense([3, d], new Float32Array(3 * d).fill(2)))
    const binds = [
      '--bind',
      `A=${dir.at('A.mtx')}`,
      '--bind',
      `B=${dir.at('B.npy')}`,
      '--out',
      `C=${dir.at('C.npy')}`,
    ]
    const ran = await spt(['run', '--plan', file, ...binds])
    expect([ran.code, ran.err, ran.out]).toEqual([0, '', expect.stringContaining(`mul.${schedule} on`)])
    expect([...(await readTensor(dir.at('C.npy'))).values!]).toEqual(
      [10, 12].flatMap((x) => new Array(d).fill(x)),
    )
  }
})

test('sizes that do not decide a dispatch determine what is compiled, and the family', async () => {
  const device = await devices.cpu()
  const compile = vi.spyOn(device, 'compile')
  const text = `${PROGRAM}schedule mul.auto choose { when (d <= 2) plain when (nnz(A) > 3) tiled(d) otherwise outer }\n`
  const kernel = (await load(text)).kernel('mul').schedule('auto')
  const open = await kernel.build(device)
  const before = compile.mock.calls.length
  expect(await codeOf(() => open.plan)).toBe('choose/open')
  const fn = await kernel.build(device, { sizes: { d: 4 } })
  expect(compile.mock.calls.length - before).toBe(2)
  const family = fn.plan as PlanFamily
  expect(family.choose.branches.map((b) => b.schedule)).toEqual(['tiled(4)', 'outer'])
  const loaded = await loadPlan(family, device)
  const A = coords(
    [4, 4],
    [
      [0, 1, 2, 3],
      [1, 2, 3, 0],
    ],
    [1, 1, 1, 1],
  )
  const values = { A, B: dense([4, 4], new Float32Array(16).fill(1)) }
  const [selected] = [await fn.bind(values), await loaded.bind(values)].map((b) => b.selection!.text)
  expect(selected).toBe('tiled(4)')
  // Data of other sizes.
  const narrow = await fn.bind({ A, B: dense([4, 2], new Float32Array(8).fill(1)) })
  expect(narrow.selection!.text).toBe('plain')
  await device.dispose()
})

test('sizes reach distillation: as an option, and by --size', async () => {
  const text = `${PROGRAM}schedule mul.auto choose { when (nnz(A) > 40) fastest { tiled(d); tiled(2 * d) } otherwise tiled(d) }\n`
  const kernel = (await load(text)).kernel('mul').schedule('auto')
  const progress: Progress[] = []
  const distilled = await distil(kernel, 'cpu', { sizes: { d: 5 }, onProgress: (p) => progress.push(p) })
  const calls = distilled.open!.choice.branches.flatMap((b) => b.calls)
  const texts = calls.map(
    (c) => `${c.schedule.name}(${c.args.map((a) => (a?.kind === 'const' ? a.value : a))})`,
  )
  const possible = ['tiled(5)', 'tiled(10)']
  for (const t of texts) expect(possible).toContain(t)
  expect(new Set(progress.map((p) => p.phase))).toEqual(new Set(['select', 'predict']))
  const stopped = new AbortController()
  const stopping = distil(kernel, 'cpu', { signal: stopped.signal, onProgress: () => stopped.abort() })
  await expect(stopping).rejects.toBe(stopped.signal.reason)

  const dir = new Folder()
  const [program, file] = [dir.file('mul.spt', text), dir.at('mul.json')]
  const words = ['emit', program, '--kernel', 'mul', '--schedule', 'auto', '--target', 'plan', '--out', file]
  const emitted = await spt([...words, '--size', 'd=5'])
  expect([emitted.code, emitted.err]).toEqual([0, expect.stringContaining('wrote')])
  const { choose } = JSON.parse(readFileSync(file, 'utf8')) as PlanFamily
  for (const { schedule } of choose.branches) expect(possible).toContain(schedule)
})

test('a loaded family states its conditions as text, with the values that decide', async () => {
  const device = await devices.cpu()
  const text = `${PROGRAM}schedule mul.auto choose { when (fill_ratio(A, bsr(2)) > 0.4) rows when (d > 2) tiled(2) otherwise outer }\n`
  const { plan } = await (await load(text)).kernel('mul').schedule('auto').build(device)
  const fn = await loadPlan(JSON.parse(JSON.stringify(plan)) as PlanFamily, device)
  const A = coords([4, 4], [[0], [1]], [1])
  const reasons = []
  for (const d of [1, 3]) {
    const { selection } = await fn.bind({ A, B: dense([4, d], new Float32Array(4 * d)) })
    reasons.push([selection!.text, selection!.reason, selection!.rejectedBranches])
  }
  const ratio = 'rows: fill_ratio(A, bsr(2)) > 0.4 does not hold: fill_ratio(A, bsr(2)) is 0.25'
  expect(reasons).toEqual([
    ['outer', 'otherwise', [ratio, 'tiled(2): d > 2 does not hold: d is 1']],
    ['tiled(2)', 'd > 2', [ratio]],
  ])
  await device.dispose()
})

test('build compiles each schedule of `fastest` that needs no data, and skips illegal ones', async () => {
  const device = await devices.cpu()
  const compile = vi.spyOn(device, 'compile')
  const text = `${PROGRAM}schedule mul.bad { reorder (f, i, j); split q by 2 }
schedule mul.auto choose { when (d > 2) fastest { plain; tiled(2); bad } when (d > 1) tiled(m) otherwise outer }\n`
  const fn = await (await load(text)).kernel('mul').schedule('auto').build(device)
  const before = compile.mock.calls.length
  expect(before).toBe(3)
  const A = coords([4, 4], [[0], [1]], [1])
  for (const [d, compiled] of [
    [1, 0],
    [3, 0],
    [2, 1],
  ] as const) {
    const C = await fn({ A, B: dense([4, d], new Float32Array(4 * d).fill(1)) })
    expect([...C.C!.values!].slice(0, d)).toEqual(new Array(d).fill(1))
    expect(compile.mock.calls.length).toBe(before + compiled)
  }
  await device.dispose()
})
