/** Spaces of sketches as a caller sees them: decisions, points, what is refused, and the kernels of the package. */
import { readdirSync } from 'node:fs'
import { expect, test } from 'vitest'
import { type Built, coords, devices, type Kernel, load } from '../../src/node.ts'
import { COUNT_LIMIT, checkPoint, points, repairPoint } from '../../src/search/spaces/points.ts'
import { sketches, sketchOrigin, usualSpace } from '../../src/search/spaces/sketches.ts'
import { count } from '../../src/search/spaces/survey.ts'
import type { Point } from '../../src/search/types.ts'
import { sample } from '../support/cases.ts'
import { diagnosticOf, refusal } from '../support/refusal.ts'

const SUMS = `kernel sums(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis f = dense_fixed(d)
  axis jd = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer B: f32[jd, f] in
  buffer C: f32[i, f] out
  iterate sum [i, j, f] as SRS { C[i, f] += A[i, j] * B[j, f] }
}
import "sparsetile/kernels/formats.spt"`

test('a point consists of ordinary steps, and its decisions come one after the other', async () => {
  const space = sketches((await load(SUMS)).kernel(), { device: 'cpu', formats: {} })
  expect(space.defaultPoint).toEqual({ 'sum.tile': 8, 'sum.order': 'rows', 'sum.written': 'unrolled' })
  expect(space.kernel(space.defaultPoint).trace).toEqual([
    'split f by 8 -> (fo, fi)',
    'reorder (i, fo, j, fi)',
    'cache_write C at fo in register',
    'unroll sum.fi',
  ])
  expect(space.next({})?.values).toEqual([0, 4, 8, 16, 32, 64])
  expect(space.next({ 'sum.tile': 0 })?.name).toBe('sum.unroll')
  expect(space.next(space.defaultPoint)).toBe(null)
  const narrow = sketches((await load(SUMS)).kernel(), { device: 'cpu', formats: {}, sizes: { d: 3 } })
  expect(narrow.defaultPoint).toEqual({ 'sum.tile': 0, 'sum.unroll': 4 })
  const all = [...points(space)]
  expect(new Set(all.map((p) => space.kernel(p).trace.join())).size).toBe(all.length)
})

test('threads of a dot product unroll their vectors and their elements', async () => {
  const kernel = (
    await load(`kernel dots(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis k = dense_fixed(d)
  axis jd = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer X: f32[i, k] in
  buffer Y: f32[jd, k] in
  buffer C: f32[i, j] out
  iterate dot [i, j, k] as SSR { C[i, j] += A[i, j] * X[i, k] * Y[j, k] }
}`)
  ).kernel()
  const space = sketches(kernel, { device: 'cuda', formats: {} })
  const { trace } = space.kernel({ ...space.defaultPoint, 'dot.per': 2, 'dot.each': 4 })
  expect(trace.slice(-2)).toEqual(['unroll kii', 'unroll ijii'])
})

test('a loop that determines other extents has no tile', async () => {
  const kernel = (
    await load(`kernel sums(a: size, b: size, c: size, e: size) {
  axis i = dense_fixed(a)
  axis j = sparse_variable(i, b)
  axis l = sparse_variable(j, c)
  axis q = sparse_variable(l, e)
  axis jd = dense_fixed(b)
  buffer T: f32[i, j, l, q] in
  buffer M: f32[i, jd] out
  iterate v [i, j, l, q] as SSRR { M[i, j] += T[i, j, l, q] }
}`)
  ).kernel()
  const space = sketches(kernel, { device: 'cpu' })
  expect([...points(space)]).toEqual([1, 2, 4, 8].map((n) => ({ 'v.unroll': n })))
  for (const p of points(space)) expect(space.kernel(p).trace[0]).toBe('cache_write M at j in register')
})

test('a space is built before formats are tried, and no point is rejected early', async () => {
  const kernel = (await load(`import "sparsetile/kernels/formats.spt"\n${SUMS}`)).kernel()
  let tried = 0
  const as = kernel.as.bind(kernel)
  kernel.as = (...given) => {
    tried++
    return as(...given)
  }
  const space = sketches(kernel, { device: 'cpu' })
  expect(diagnosticOf(() => space.kernel(null as unknown as Point))?.code).toBe('api/argument')
  expect(tried).toBe(0)
  expect(diagnosticOf(() => space.kernel({}))?.message).toContain('does not decide A.format')
  // One of each that fits, but for those that are refused.
  const { values } = space.next({})!
  expect(tried).toBeLessThan(3 * values.length)
})

test('variants distribute the guess in every other way, and neighbours differ in one decision', async () => {
  for (const device of ['webgpu', 'cuda'] as const) {
    const space = sketches((await load(SUMS)).kernel(), { device, formats: {} })
    const forms = space.shortlist()
    expect(forms[0]).toEqual(space.defaultPoint)
    const ways = forms.map((f) => [f['sum.fused'], f['sum.sketch'], f['sum.ends']].join(' '))
    expect(new Set(ways).size).toBe(forms.length)
    expect(ways).toEqual(
      expect.arrayContaining(['1 lanes ', '2 elements ', '2 shares atomic', '2 shares in order']),
    )
    for (const form of forms)
      for (const near of space.variants(form)) {
        expect(checkPoint(space, near)).toEqual(near)
        const names = Object.keys(form).filter((name) => name in near)
        const others = names.filter((name) => near[name] !== form[name])
        expect(others.length).toBeGreaterThan(0)
        for (const name of ['sum.fused', 'sum.sketch', 'sum.ends']) expect(others).not.toContain(name)
      }
  }
})

test('formats are the fitting ones of the program, or those that are passed', async () => {
  const kernel = (await load(SUMS)).kernel()
  const formats = sketches(kernel, { device: 'cpu' }).next({})
  expect(formats?.name).toBe('A.format')
  expect(formats?.values).toEqual(expect.arrayContaining(['as declared', 'csr', 'bsr', 'sell', 'coo']))
  // Segments of lists come with the data.
  expect(formats?.values).not.toContain('vbr')
  const given = sketches(kernel, { device: 'cpu', formats: { A: ['', 'bsr(4)'] } })
  expect(given.next({})?.values).toEqual(['as declared', 'bsr(4)'])
  const point = repairPoint(given, { 'A.format': 'bsr(4)' })!
  expect(given.kernel(point).trace[0]).toBe('A as bsr(4)')
})

test('formats that schedules of the program use for a tensor are likely, with their arguments', async () => {
  const kernel = (
    await load(`${SUMS}
schedule sums.wide(c = 8) {
  A as sell(c, 64)
}
schedule sums.usual choose {
  when (d > 100) wide(16)
  otherwise wide
}`)
  ).kernel()
  const space = sketches(kernel, { device: 'cuda' })
  expect(space.next({})?.likely).toEqual(['as declared', 'sell'])
  expect(space.next({ 'A.format': 'sell' })?.likely).toEqual([8, 16])
  expect(space.next({ 'A.format': 'sell', 'A.c': 16 })?.likely).toEqual([64])
  expect(space.next({ 'A.format': 'bsr' })?.values).toEqual(
    expect.arrayContaining([...space.next({ 'A.format': 'bsr' })!.likely!]),
  )
  // What no power of two is may be given as well.
  const odd = await load(`${SUMS}
schedule sums.own {
  A as bsr(12)
}`)
  expect(sketches(odd.kernel(), { device: 'cuda' }).next({ 'A.format': 'bsr' })).toMatchObject({
    values: expect.arrayContaining([8, 12, 16]),
    likely: [12],
  })
})

test('sketches searched by default are for the sizes that are bound', async () => {
  const kernel = (await load(SUMS)).kernel()
  const A = coords(
    [3, 4],
    [
      [0, 1],
      [1, 2],
    ],
  )
  const space = await usualSpace(kernel, 'cuda', { tensors: { A }, params: { d: 32 } })
  expect(sketchOrigin(space)?.options.sizes).toEqual({ m: 3, n: 4, d: 32 })
  const open = sketchOrigin(await usualSpace(kernel, 'cuda', {}))
  expect(open?.options.sizes).toEqual({})
})

test('unsupported kernels are rejected', async () => {
  const kernel = (await load(SUMS)).kernel()
  const code = (f: () => unknown): string => refusal(f).code
  expect(code(() => sketches(kernel, { device: 'cpu', formats: { B: [''] } }))).toBe('search/unknown-tensor')
  expect(code(() => sketches(kernel, { device: 'gpu' as never }))).toBe('api/argument')
  expect(code(() => sketches(kernel.unroll('f', 4), { device: 'cpu' }))).toBe('search/has-schedule')
  const space = sketches(kernel, { device: 'cpu', formats: {} })
  expect(code(() => space.kernel({ ...space.defaultPoint, 'sum.tile': 7 }))).toBe('space/point')
})

test('a kernel without steps on loops runs as the best guess on cpu', async () => {
  const kernel = (await load(SUMS)).kernel()
  const cpu = await devices.cpu()
  const space = sketches(kernel, { device: 'cpu', formats: {} })
  const guess = await space.kernel(space.defaultPoint).build(cpu, { auto: false })
  const textsOf = (c: Built): readonly string[] => c.program.plan.texts.map((t) => t.text)
  expect(textsOf(await kernel.build(cpu))).toEqual(textsOf(guess))
  expect(textsOf(await kernel.build(cpu, { auto: false }))).not.toEqual(textsOf(guess))
  expect(kernel.autoSchedule('cpu').trace).toEqual(space.kernel(space.defaultPoint).trace)
  expect(kernel.autoSchedule('cpu', { d: 3 }).trace).toEqual(['unroll f by 4'])
  const own = kernel.unroll('f', 4)
  expect(own.autoSchedule('cpu')).toBe(own)
})

test('every kernel of the package has a best guess for every device', async () => {
  const refused: string[] = []
  const files = readdirSync('kernels').filter((f) => f.endsWith('.spt'))
  for (const file of sample(files, 6)) {
    const program = await load(`kernels/${file}`)
    for (const name of program.kernels)
      for (const device of ['cpu', 'webgpu', 'cuda'] as const) {
        const space = sketches(program.kernel(name), { device, formats: {} })
        const code = diagnosticOf(() => {
          const kernel = space.kernel(space.defaultPoint)
          if (device !== 'webgpu') kernel.emit(device === 'cpu' ? 'js' : 'cuda')
        })?.code
        if (code) refused.push(`${name} on ${device}: ${code}`)
      }
  }
  expect(refused).toEqual([])
})

/** The text of a kernel, names by the order in which they come. */
function shapeOf(kernel: Kernel): string {
  const names = new Map<string, number>()
  const number = (name: string): string => {
    if (!names.has(name)) names.set(name, names.size)
    return `v${names.get(name)}`
  }
  const texts = kernel.emit('cuda').map((m) => m.text)
  return texts
    .join('\n')
    .replace(/[A-Za-z_]\w*/g, number)
    .replace(/\s+/g, ' ')
}

/** What was fastest by hand, as points. */
const BY_HAND: readonly {
  readonly of: string
  readonly schedule: string
  readonly args: readonly number[]
  readonly sizes: Readonly<Record<string, number>>
  readonly point: Point
}[] = [
  {
    of: 'spmm',
    schedule: 'ahead',
    args: [128, 4, 32, 4, 8, 16],
    sizes: { d: 128 },
    point: {
      'A.format': 'rows_by_length(128)',
      ...{ 'sum_by_length.sketch': 'elements', 'sum_by_length.rows': 4, 'sum_by_length.lanes': 32 },
      ...{
        'sum_by_length.each': 4,
        'sum_by_length.ahead': 8,
        'sum_dcsr.fused': 1,
        'sum_dcsr.sketch': 'lanes',
      },
      ...{ 'sum_dcsr.rows': 1, 'sum_dcsr.groups': 16, 'sum_dcsr.lanes': 32, 'sum_dcsr.neighbours': 'lanes' },
      ...{ 'sum_dcsr.ahead': 8, 'sum_dcsr.each': 4 },
    },
  },
  {
    of: 'spmm',
    schedule: 'ahead_merged',
    args: [64, 8, 16, 4, 8],
    sizes: { d: 128 },
    // One launch has one shape of blocks: of different sketches as well.
    point: {
      'A.format': 'rows_by_length(64)',
      ...{ 'sum_by_length.sketch': 'elements', 'sum_dcsr.sketch': 'lanes', 'sum_dcsr.fused': 1 },
      ...{ 'sum.launches': 'merged', 'sum.rows': 8, 'sum.lanes': 16 },
      ...{ 'sum_by_length.each': 4, 'sum_by_length.ahead': 8, 'sum_dcsr.each': 4, 'sum_dcsr.ahead': 8 },
    },
  },
  {
    of: 'spmm',
    schedule: 'strips',
    args: [4, 64, 64, 4, 2, 4, 32, 2],
    sizes: { d: 128 },
    point: {
      'A.format': 'strips_rest(4, 64, 64, 4)',
      ...{ 'sum_strips.fused': 1, 'sum_strips.sketch': 'elements', 'sum_strips.results': 'together' },
      ...{ 'sum_strips.rows': 4, 'sum_strips.lanes': 32, 'sum_strips.each': 2, 'sum_strips.ahead': 2 },
      ...{ 'sum_strip_pieces.fused': 3, 'sum_strip_pieces.sketch': 'elements', 'sum_strip_pieces.rows': 4 },
      ...{ 'sum_strip_pieces.lanes': 32, 'sum_strip_pieces.each': 2, 'sum_strip_pieces.ahead': 2 },
    },
  },
  {
    of: 'spmm',
    schedule: 'balanced',
    args: [16, 32, 16, 4, 2],
    sizes: { d: 128 },
    point: {
      ...{ 'sum.fused': 2, 'sum.sketch': 'shares', 'sum.shares': 16, 'sum.share': 32, 'sum.lanes': 16 },
      ...{ 'sum.each': 4, 'sum.by': 2 },
    },
  },
  {
    of: 'spmv',
    schedule: 'balanced',
    args: [128, 8, 4],
    sizes: {},
    point: { 'sum.fused': 2, 'sum.sketch': 'shares', 'sum.shares': 128, 'sum.share': 8, 'sum.by': 4 },
  },
  {
    of: 'gemm',
    schedule: 'large',
    args: [128, 128, 8, 2],
    sizes: { m: 2048, n: 2048, k: 2048 },
    point: { 'product.rows': 128, 'product.cols': 128 },
  },
  {
    of: 'softmax',
    schedule: 'cooperative',
    args: [8, 16, 2],
    sizes: {},
    point: { 'normalise.rows': 8, 'normalise.lanes': 16 },
  },
  {
    of: 'softmax',
    schedule: 'by_length',
    args: [1024, 8, 32, 4],
    sizes: {},
    point: {
      'A.format': 'rows_by_length(1024)',
      ...{ 'normalise_by_length.sketch': 'a group a row', 'normalise_dcsr.sketch': 'a block a row' },
      ...{ 'normalise.launches': 'merged', 'normalise.rows': 8, 'normalise.lanes': 32 },
      ...Object.fromEntries(
        ['M_short', 'Z_short', 'P_short', 'M_long', 'Z_long', 'P_long'].map((of) => [
          `normalise_${of.endsWith('long') ? 'dcsr' : 'by_length'}.${of}.ahead`,
          4,
        ]),
      ),
    },
  },
]

test.each(BY_HAND)('$schedule of $of is a point', async ({ of, schedule, args, sizes, point }) => {
  const kernel = (await load(`kernels/${of}.spt`)).kernel(of)
  const formats: Record<string, string[]> = 'A.format' in point ? { A: [`${point['A.format']}`] } : {}
  const space = sketches(kernel, { device: 'cuda', sizes, formats })
  const whole = repairPoint(space, { ...space.defaultPoint, ...point })!
  expect(whole).toMatchObject(
    Object.fromEntries(Object.entries(point).filter(([name]) => name !== 'A.format')),
  )
  expect(shapeOf(space.kernel(whole))).toBe(shapeOf(kernel.schedule(schedule, ...args)))
})

test('a space of many formats is counted within seconds', async () => {
  const program = await load('sparsetile/kernels/gcn.spt')
  const own = sketches(program.kernel(program.kernels[0]), { device: 'cpu' })
  // Each look brings a kernel into a format: a few milliseconds.
  let looks = 0
  const counted = {
    name: own.name,
    next(p: Point) {
      const open = own.next(p)
      if (open) looks++
      return open
    },
  }
  expect(count(counted).isExact).toBe(false)
  expect(looks).toBeLessThanOrEqual(COUNT_LIMIT / 20)
})

test('large blocks are not unrolled: a guess keeps them as loops', async () => {
  const text = `import "sparsetile/kernels/formats.spt"
    kernel product(m: size, n: size, o: size) {
      axis i = dense_fixed(m)
      axis p = dense_fixed(n)
      axis j = dense_fixed(o)
      buffer A: f32[i, p] in
      buffer B: f32[p, j] in
      buffer C: f32[i, j] out
      iterate s [i, j, p] as SSR { C[i, j] += A[i, p] * B[p, j] }
    }`
  const kernel = (await load(text)).kernel()
  const length = (format: string): number =>
    kernel.as('A', format).autoSchedule('cuda').emit('cuda')[0]!.text.length
  const small = length('bsr(4)')
  for (const b of sample(['bsr(8)', 'bsr(16)'], 2)) expect(length(b)).toBeLessThan(2 * small)
})
