/** Plans from JSON: loaded, run, and rejected with a reason. */
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
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
import { readPlan } from '../../src/plan/read.ts'
import type { Expression, Plan } from '../../src/plan/schema.ts'
import { sha256 } from '../../src/plan/sha256.ts'
import { checkRanges } from '../../src/run/execution/index-ranges.ts'
import { Folder, spt } from '../cli/support.ts'
import { costly } from '../support/cases.ts'

let cpu: Device
let plan: Plan
const A = coords(
  [3, 4],
  [
    [0, 0, 2],
    [0, 2, 1],
  ],
  [5, 6, 7],
)
const B = dense([4, 2], [1, 2, 3, 4, 5, 6, 7, 8])
const C = [35, 46, 0, 0, 21, 28]
beforeAll(async () => {
  cpu = await devices.cpu()
  const kernel = (await load('kernels/spmm.spt')).kernel('spmm')
  const compiled = await kernel.schedule('hyb', 1, 1).build(cpu)
  plan = JSON.parse(JSON.stringify(compiled.plan)) as Plan
  compiled.release()
})
afterAll(() => cpu.dispose())

const code = (work: () => Promise<unknown>): Promise<unknown> =>
  work().catch((e: unknown) => e instanceof SptError && e.diagnostics[0]!.code)

test('a plan with several parts is loaded, bound, updated and read', async () => {
  const fn = await loadPlan(plan, cpu)
  expect([...(await fn({ A, B })).C!.values!]).toEqual(C)
  const bound = await fn.bind({ A, B })
  await bound.set('A', [50, 60, 70])
  await bound.run()
  expect([...(await bound.get('C')).values!]).toEqual(C.map((x) => 10 * x))
  expect(Object.keys(await bound.outputs())).toEqual(['C'])
  await expect(bound.get('D')).rejects.toThrow('api/unknown-buffer')
  await expect(fn({ A })).rejects.toThrow('bind/')
  expect(await code(() => bound.verify())).toBe('plan/no-kernel')
  expect(await code(() => bound.explain())).toBe('plan/no-kernel')
  expect(await code(async () => fn.compilation)).toBe('plan/no-kernel')
  const again = await bound.rebuild(cpu)
  await again.run()
  expect([...(await again.get('C')).values!]).toEqual(C.map((x) => 10 * x))
  expect(fn.plan).toEqual(plan)
  for (const b of [bound, again]) b.free()
  fn.release()
})

type Changed = { -readonly [F in keyof Plan]: Plan[F] }
const changed = (change: (p: Changed) => void): unknown => {
  const copy = structuredClone(plan) as Changed
  change(copy)
  return copy
}
const first = <T>(xs: readonly T[], change: object): readonly T[] => [
  { ...xs[0]!, ...change },
  ...xs.slice(1),
]

const deep = (levels: number): Expression => {
  let e: Expression = 'm'
  for (let k = 0; k < levels; k++) e = ['add', e, 0]
  return e
}
const instanceIn = (p: Plan): { tree: object } =>
  (p.binding as unknown as { reformats: { instance: { tree: object } }[] }).reformats[0]!.instance
function deepTree(levels: number): object {
  let tree: object = { kind: 'leaf', part: 0 }
  for (let k = 0; k < levels; k++)
    tree = { kind: 'cases', queries: [], cases: [{ text: '', where: null, child: tree }] }
  return tree
}

test.each<[string, string, (p: Changed) => void]>([
  ['plan/version', 'sparsetile-plan/2', (p) => Object.assign(p, { schema: 'sparsetile-plan/2' })],
  ['plan/malformed', 'schema of the plan', (p) => Object.assign(p, { schema: 'other/1' })],
  ['plan/hash', 'modules[0]', (p) => (p.modules = first(p.modules, { text: `${p.modules[0]!.text} ` }))],
  ['plan/malformed', 'buffers[0].length', (p) => (p.buffers = first(p.buffers, { length: null }))],
  ['plan/malformed', 'buffers[0].length', (p) => (p.buffers = first(p.buffers, { length: ['add', 'm'] }))],
  ['plan/malformed', 'buffers[0].length', (p) => (p.buffers = first(p.buffers, { length: 'nowhere' }))],
  ['plan/malformed', 'buffers[0].colour', (p) => (p.buffers = first(p.buffers, { colour: 'red' }))],
  ['plan/malformed', 'steps[0].clear', (p) => (p.steps = [{ clear: 'nowhere' }, ...p.steps])],
  ['plan/malformed', 'binding.axes', (p) => (p.binding = { ...p.binding, axes: 3 } as never)],
  [
    'plan/malformed',
    'binding.axes[0].kind',
    (p) => (p.binding = { ...p.binding, axes: [{ kind: 'round' }] }),
  ],
  ['plan/malformed', 'binding of the plan', (p) => (p.binding = { ...p.binding, axes: [] })],
  ['plan/malformed', 'buffers[0].length', (p) => (p.buffers = first(p.buffers, { length: deep(20_000) }))],
  ['plan/malformed', 'checks[0].most', (p) => (p.checks = [{ ...p.checks[0]!, most: deep(3_000) as 1 }])],
  ['plan/malformed', 'binding.reformats[0].instance', (p) => (instanceIn(p).tree = deepTree(9_000))],
  ['plan/other-device', 'is a cpu device', (p) => (p.device = 'cuda')],
  ['plan/missing-feature', 'magic', (p) => (p.needs = { ...p.needs, features: ['magic'] })],
  ['plan/limit', 'threads', (p) => (p.needs = { ...p.needs, lanes: 64 })],
])('%s: %s', async (code, text, change) => {
  const error = await loadPlan(changed(change) as Plan, cpu).catch((e: unknown) => e)
  expect(error).toBeInstanceOf(SptError)
  expect((error as SptError).message).toContain(code)
  expect((error as SptError).message).toContain(text)
})

test('no value makes the reader fail otherwise', async () => {
  const fields = Object.keys(plan)
  for (const value of [null, 7, 'x', [], {}, [null], [[]], true])
    for (const field of fields) {
      const error = await loadPlan({ ...plan, [field]: value } as never, cpu).catch((e: unknown) => e)
      if (error instanceof Error)
        expect(error, `${field} = ${JSON.stringify(value)}`).toBeInstanceOf(SptError)
    }
  for (const value of [null, 7, 'x', []])
    await expect(loadPlan(value as never, cpu)).rejects.toThrow('plan/malformed')
})

test('a changed binding is rejected when it is loaded, or by a diagnostic of its inputs', async () => {
  const node = fc.infiniteStream(fc.nat(1000))
  let rejected = 0
  await fc.assert(
    fc.asyncProperty(node, fc.constantFrom('m', 'A', 'j', 'q', 3, null, []), async (choices, value) => {
      const copy = structuredClone(plan)
      let at = copy.binding as unknown as Record<string, unknown>
      for (;;) {
        const keys = Object.keys(at)
        const key = keys[choices.next().value! % keys.length]
        if (key === undefined) break
        const own = at[key]
        if (typeof own === 'object' && own !== null && choices.next().value! % 6 > 0) {
          at = own as typeof at
          continue
        }
        if (Array.isArray(at)) at.splice(Number(key), 1)
        else at[key] = value
        break
      }
      const error = await loadPlan(copy, cpu)
        .then((fn) => fn({ A, B }))
        .then(
          () => null,
          (e: unknown) => e,
        )
      if (error !== null) {
        expect(error).toBeInstanceOf(SptError)
        rejected++
      }
    }),
    { numRuns: costly(150) },
  )
  expect(rejected).toBeGreaterThan(5)
})

test('sizes beyond 32 bits are rejected before a run', () => {
  const sizes = (m: number): Map<string, number> =>
    new Map(plan.sizes.map(({ name, from }) => [name, from === 'caller' ? m : 5]))
  expect(checkRanges(readPlan(plan), sizes(100))).toBe(false)
  expect(() => checkRanges(readPlan(plan), sizes(2 ** 20))).toThrow('plan/overflow')
})

test('the hash is SHA-256', () => {
  expect(sha256('')).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855')
  expect(sha256('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
  expect(sha256(`ä${'x'.repeat(200)}`)).toMatch(/^[0-9a-f]{64}$/)
})

test('spt emit writes a plan, and spt run executes it', async () => {
  const dir = new Folder()
  const [file, out, data] = [dir.at('spmm.json'), dir.at('C.npy'), dir.at('A.mtx')]
  const emitted = await spt([
    'emit',
    'kernels/spmm.spt',
    '--kernel',
    'spmm',
    '--schedule',
    'cpu',
    '--target',
    'plan',
    '--out',
    file,
  ])
  expect([emitted.code, emitted.err]).toEqual([0, expect.stringContaining('wrote')])
  expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ schema: 'sparsetile-plan/1', device: 'cpu' })
  await writeTensor(data, A)
  await writeTensor(dir.at('B.npy'), B)
  const ran = await spt([
    'run',
    '--plan',
    file,
    '--bind',
    `A=${data}`,
    '--bind',
    `B=${dir.at('B.npy')}`,
    '--out',
    `C=${out}`,
  ])
  expect([ran.code, ran.err]).toEqual([0, ''])
  expect([...(await readTensor(out)).values!]).toEqual(C)
  const rejected = await spt(['emit', 'kernels/spmm.spt', '--target', 'js', '--device', 'cpu'])
  expect(rejected.code).toBe(2)
  expect((await spt(['run'])).code).toBe(2)
})

test('a plan has the sums without a fixed order of its schedule', async () => {
  const device = await devices.webgpu({ adapter: 'swiftshader' })
  const kernel = (await load('kernels/spmm.spt')).kernel('spmm')
  for (const name of ['hyb', 'gpu']) {
    const fn = await kernel.schedule(name).build(device)
    const loaded = await loadPlan(JSON.parse(JSON.stringify(fn.plan)), device)
    expect(loaded.deterministic).toBe(name === 'gpu')
    expect(loaded.unorderedSums).toEqual(fn.unorderedSums)
    const bound = await loaded.bind({ A, B })
    expect(bound.deterministic).toBe(name === 'gpu')
  }
  await device.dispose()
})

test('options of the command without effect on a plan are rejected, and random data are reported', async () => {
  const folder = new Folder()
  const file = folder.file('plan.json', JSON.stringify(plan))
  const matrix = folder.at('a.mtx')
  await writeTensor(matrix, A)
  const run = ['run', '--plan', file, '--bind', `A=${matrix}`, '--size', 'd=2']
  for (const option of [
    ['--verify'],
    ['--schedule', 'gpu'],
    ['--kernel', 'x'],
    ['--repeat', '3'],
    ['x.spt'],
  ]) {
    const { code, err } = await spt([...run, ...option])
    expect([code, err]).toEqual([2, expect.stringContaining(`${option[0]} has no effect with --plan`)])
  }
  expect((await spt(run)).out).toContain('random: B (seed 0)')
  const { err } = await spt(['run', '--plan', matrix])
  expect(err).toContain('is not JSON')
  expect(err).not.toContain(`--out '${matrix}'`)
  folder.remove()
})

test('the command names the schedule that the run selected', async () => {
  const folder = new Folder()
  const program = folder.file(
    'rectified.spt',
    `format blocks(b: size) over (i, j) {
      axis io = dense_fixed(ceildiv(i, b))
      axis jo = sparse_variable(io, ceildiv(j, b))
      axis ii = dense_fixed(b)
      axis ji = dense_fixed(b)
      map (i, j) -> (i / b, j / b, i % b, j % b)
      inverse (io, jo, ii, ji) -> (io * b + ii, jo * b + ji)
    }
    kernel rectified(m: size, k: size, s: f32) {
      axis i = dense_fixed(m)
      axis j = dense_fixed(k)
      buffer S: f32[i, j] in
      buffer H: f32[i, j] local
      buffer R: f32[i] out
      iterate first [i, j] as SS { H[i, j] = max(S[i, j], s) - s }
      iterate second [i, j] as SR { R[i] += H[i, j] }
    }
    schedule rectified.found { H as blocks(2) live in place }
    schedule rectified.whole { split second.j by 8 }
    schedule rectified.pick choose {
      when (fill_ratio(H, blocks(2)) < 0.5) found
      otherwise whole
    }`,
  )
  const file = folder.at('plan.json')
  await spt(['emit', program, '--target', 'plan', '--schedule', 'pick', '--out', file])
  // All random data exceed -10, and none 10.
  for (const [s, schedule] of [
    ['10', 'found'],
    ['-10', 'whole'],
  ]) {
    const run = ['run', '--plan', file, '--size', 'm=8', '--size', 'k=16', '--size', `s=${s}`]
    expect((await spt(run)).out).toContain(`rectified.${schedule} on `)
    expect(JSON.parse((await spt([...run, '--json'])).out)).toMatchObject({ schedule })
  }
  folder.remove()
})
