/** Where launches that overlap wait: against a walk over all paths and a comparison of all pairs of steps. */
import { expect, test } from 'vitest'
import { insertWait, overlapsOf } from '../../src/backends/targets/cuda/programmatic-dependent-launch.ts'
import { emit } from '../../src/backends/targets/index.ts'
import { int, load as loadOf, lt } from '../../src/ir/expressions/expr.ts'
import { accessesOf } from '../../src/ir/statements/accesses.ts'
import type { Kernel3, Launch, PlanStep, Stmt } from '../../src/ir/statements/loops.ts'
import { type Body, bodiesOf } from '../../src/ir/statements/tree.ts'
import { load } from '../../src/node.ts'
import { scaled } from '../support/cases.ts'
import { compileCuda, noNvcc } from '../support/nvcc.ts'

const WAIT: Stmt = { kind: 'instr', instr: 'wait', threads: 1, texts: [] }

/** Follows every path; says how often each has waited at its end, and what it touched before. */
function waits(body: Body, before: boolean, touched: Set<string>): boolean {
  let waited = before
  for (const s of body) {
    if (s === WAIT) {
      expect(waited, 'a second wait').toBe(false)
      waited = true
      continue
    }
    const bodies = bodiesOf(s)
    const bare = s.kind === 'if' ? { ...s, then: [], else: [] } : 'body' in s ? { ...s, body: [] } : s
    if (!waited) for (const a of accessesOf([bare])) touched.add(a.buffer)
    const after = bodies.map((b) => waits(b, waited, touched))
    if (s.kind === 'if') {
      expect(after[0], 'both branches wait, or none').toBe(after[1])
      waited = after[0]!
    } else for (const a of after) expect(a, 'a wait in a loop').toBe(waited)
  }
  return waited
}

/** What two steps in this order must not do at once. */
function conflicts(first: PlanStep, second: Launch): Set<string> {
  const modes = (s: PlanStep) =>
    s.kind === 'launch'
      ? accessesOf(s.body)
      : s.kind === 'clear'
        ? [{ buffer: s.buffer, mode: 'write' as const }]
        : []
  const out = new Set<string>()
  for (const a of modes(first))
    for (const b of modes(second))
      if (a.buffer === b.buffer && (a.mode === 'write' || b.mode === 'write')) out.add(a.buffer)
  return out
}

function check(plan: Kernel3): number {
  const overlaps = overlapsOf(plan)
  let next = 0
  for (const [k, step] of plan.steps.entries()) {
    if (step.kind === 'clear') continue
    const { dependent, leads } = overlaps[next++]!
    expect(leads).toBe(k < plan.steps.length - 1)
    expect(dependent !== undefined).toBe(k > 0)
    if (!dependent || step.kind !== 'launch') continue
    const names = new Set(plan.buffers.map((b) => b.name))
    const expected = plan.steps.slice(0, k).flatMap((s) => [...conflicts(s, step)])
    expect([...dependent].sort()).toEqual([...new Set(expected)].filter((b) => names.has(b)).sort())
    const early = new Set<string>()
    expect(waits(insertWait(step.body, dependent, WAIT), false, early), 'every path waits').toBe(true)
    for (const b of early) expect(dependent).not.toContain(b)
  }
  return next
}

test('under every schedule all threads wait once, before any access to data of earlier steps', async () => {
  let launches = 0
  for (const file of ['attention', 'convolution', 'rgcn', 'softmax', 'segment-reduce', 'spmv']) {
    const program = await load(`kernels/${file}.spt`)
    for (const name of program.kernels) {
      const kernel = program.kernel(name)
      for (const s of [undefined, ...kernel.schedules]) {
        if (s !== undefined && kernel.dispatches.includes(s)) continue
        launches += check((s === undefined ? kernel : kernel.schedule(s)).compilation.plan)
      }
    }
  }
  expect(launches).toBeGreaterThan(scaled(50))
})

const TWO = `kernel two(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: f32[i, j] in
  buffer x: f32[i] in
  buffer s: f32[i] local
  buffer y: f32[i] out
  iterate sums [i, j] as SR { s[i] += A[i, j] }
  iterate scale [i] as S { y[i] = x[i] * s[i] }
}
schedule two.gpu() { bind sums.i to block.x, scale.i to block.x }`

const SWAP = `kernel swap(m: size) {
  axis i = dense_fixed(m)
  buffer x: f32[i] inout
  buffer y: f32[i] out
  iterate first [i] as S { y[i] = x[i] }
  iterate second [i] as S { x[i] = 1 }
}`

const LATER = `kernel later(m: size) {
  axis i = dense_fixed(m)
  buffer x: f32[i] inout
  buffer y: f32[i] out
  buffer z: f32[i] out
  iterate first [i] as S { y[i] = x[i] }
  iterate second [i] as S { z[i] = 2 }
  iterate third [i] as S { x[i] = 1 }
}`

const ONE = `kernel one(m: size) {
  axis i = dense_fixed(m)
  buffer x: f32[i] in
  buffer y: f32[i] out
  iterate scale [i] as S { y[i] = 2 * x[i] }
}`

test('by hand: the second of two launches, its inputs before the wait', async () => {
  const [module] = emit((await load(TWO)).kernel().schedule('gpu').compilation.plan, 'cuda')
  expect(module!.entries.map((e) => e.waits)).toEqual([undefined, true])
  const second = module!.text.slice(module!.text.lastIndexOf('extern'))
  expect(second).toContain('const float* __restrict__ x,')
  expect(second).toContain('const float* s,')
  expect(second).toContain('float* __restrict__ y,')
  const wait = second.indexOf('await_last_launch();')
  expect(wait).toBeGreaterThan(0)
  expect(second.indexOf('s[')).toBeGreaterThan(wait)
  const first = module!.text.slice(module!.text.indexOf('extern'), module!.text.lastIndexOf('extern'))
  expect(first).toContain('begin_next_launch();')
  expect(first).not.toContain('await_last_launch();')
  expect(second).not.toContain('begin_next_launch();')
})

test('by hand: earlier reads are awaited by writers', async () => {
  const { plan } = (await load(SWAP)).kernel().compilation
  expect(plan.steps.map((s) => s.kind)).toEqual(['launch', 'launch'])
  expect(check(plan)).toBe(2)
  expect([...overlapsOf(plan)[1]!.dependent!]).toEqual(['x'])
})

test('by hand: a launch waits for all before it, since the one before may not have waited yet', async () => {
  const { plan } = (await load(LATER)).kernel().compilation
  expect(check(plan)).toBe(3)
  expect(overlapsOf(plan).map((o) => o.dependent && [...o.dependent])).toEqual([undefined, [], ['x']])
})

test('by hand: branches and their conditions', () => {
  const zero = int(0)
  const put = (buffer: string): Stmt => ({ kind: 'store', buffer, index: [zero], value: zero })
  const at = (buffer: string) => lt(loadOf(buffer, [zero], 'i32'), int(7))
  const branch = (cond: string, then: Body, otherwise: Body = []): Stmt => ({
    kind: 'if',
    cond: at(cond),
    then,
    else: otherwise,
  })
  const held = new Set(['h'])
  const of = (...body: Stmt[]) => insertWait(body, held, WAIT)
  expect(of(put('a'))).toEqual([put('a'), WAIT])
  expect(of(put('a'), put('h'), put('b'))).toEqual([put('a'), WAIT, put('h'), put('b')])
  expect(of(branch('h', [put('a')]))).toEqual([WAIT, branch('h', [put('a')])])
  expect(of(branch('a', [put('b'), put('h')]))).toEqual([branch('a', [put('b'), WAIT, put('h')], [WAIT])])
  expect(of(branch('a', [put('b')], [branch('h', [])]), put('h'))).toEqual([
    branch('a', [put('b'), WAIT], [WAIT, branch('h', [])]),
    put('h'),
  ])
  const loop: Stmt = { kind: 'while', cond: at('a'), body: [put('b'), put('h')] }
  expect(of(put('b'), loop)).toEqual([put('b'), WAIT, loop])
})

test('a single launch has no dependency instructions', async () => {
  const [module] = emit((await load(ONE)).kernel().parallel().compilation.plan, 'cuda')
  expect(module!.entries.map((e) => e.waits)).toEqual([undefined])
  expect(module!.text).not.toMatch(/launch\(\)|griddepcontrol/)
  expect(module!.text.match(/__restrict__/g)).toHaveLength(2)
})

test.skipIf(noNvcc)('the code compiles', async () => {
  const [module] = emit((await load(TWO)).kernel().schedule('gpu').compilation.plan, 'cuda')
  expect(compileCuda([module!.text])).toBe('')
})
if (noNvcc) console.log(`skipped: compiling CUDA: ${noNvcc}`)
