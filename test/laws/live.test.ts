/** Formats whose structure is found in each run: results are the reference's, lists those of the host. */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { printedSteps } from '../../src/api/printed-trace.ts'
import { parseProgram } from '../../src/api/program.ts'
import { runLoops } from '../../src/api/stage-runs.ts'
import { verifyPass, verifyStage } from '../../src/api/stage-verifier.ts'
import { type Diagnostic, SptError } from '../../src/ast/diagnostic.ts'
import { loopsOf } from '../../src/ir/definitions.ts'
import { printExpr } from '../../src/ir/print-stage2.ts'
import { walkStmts } from '../../src/ir/tree.ts'
import { reference } from '../../src/reference/index.ts'
import { bindInputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/reference-inputs.ts'
import type { Compilation } from '../../src/run/compile.ts'
import { checkRanges } from '../../src/run/index-ranges.ts'
import { createCpuDevice } from '../../src/runtime/cpu.ts'
import type { Device } from '../../src/runtime/device.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu-node.ts'
import { Choices } from '../support/choices.ts'
import { compileCuda, noNvcc } from '../support/nvcc.ts'
import { refusal as diagnosticOf } from '../support/refusal.ts'
import { agreeOnAll, agreeOnDevice } from './agree.ts'
import { numbers, parameters } from './law.ts'
import { KERNELS, LIVE, type Live, live, matrix, sizeOf } from './live-gen.ts'

let webgpu: Device
beforeAll(async () => {
  webgpu = await createNodeWebGpu()
})
afterAll(() => webgpu.dispose())

const scheduled = ({ text }: { readonly text: string }, name: string): Compilation =>
  parseProgram(text).kernel().schedule(name).compilation

const told = async (s: Live, law: () => Promise<void> | void): Promise<void> => {
  try {
    await law()
  } catch (e) {
    throw new Error(`${e instanceof Error ? e.stack : e}\n${s.text}\n${s.sizes}`)
  }
}
/** How many coordinates are listed of each outer one, as the first chunk knows. */
const listedIn = (memory: ReadonlyMap<string, ArrayLike<number | bigint>>, { lists }: Live): number[] =>
  Array.from(memory.get('counts_A')!, Number).slice(0, lists)

const property = (usual: number, law: (s: Live, c: Choices) => Promise<void> | void) =>
  fc.assert(
    fc.asyncProperty(numbers, (n) => {
      const c = new Choices(n)
      const s = live(c)
      return told(s, () => law(s, c))
    }),
    parameters(usual),
  )

/** Lists apart, and one loop over all of them. */
const SCHEDULES = ['live', 'fused'] as const

test.each(SCHEDULES)(
  'a product is what the reference computes, on every stage and the cpu: %s',
  (name) => property(40, (s) => agreeOnAll(scheduled(s, name), s.inputs)),
  3_600_000,
)

test.each(SCHEDULES)(
  'and on webgpu: %s',
  (name) =>
    property(8, async (s) => {
      const c = scheduled(s, name)
      const bound = bindInputs(c.kernel, s.inputs)
      const expected = reference(c.source, referenceInputs(c.source, bound)).buffers
      expect(await agreeOnDevice(webgpu, c, bound, expected)).toBe(true)
    }),
  3_600_000,
)

test.each(SCHEDULES)(
  'the lists are those that the host makes of the same tensor: %s',
  (name) =>
    property(40, (s) => {
      const c = scheduled(s, name)
      const bound = bindInputs(c.kernel, s.inputs)
      const memory = runLoops(c.loops, bound, 'forward')
      const { list } = LIVE[s.format]
      const host = bindInputs(scheduled(s.host, 'host').kernel, s.host.inputs).arrays
      const indptr = host.get('go_indptr') ?? host.get(`${list}_indptr`)!
      const coordinates = host.get(list) ?? host.get(`${list}_indices`)!
      // Every chunk knows them.
      const every = Array.from(memory.get('counts_A')!, Number)
      const counts = every.slice(0, indptr.length - 1)
      expect(every).toEqual(every.map((_, k) => counts[k % counts.length]))
      const mine = memory.get(`${list}_of_A`)!
      const width = host.has('go_indptr') ? coordinates.length / Math.max(1, Number(indptr.at(-1))) : 1
      const stride = counts.length === 0 ? 0 : mine.length / counts.length
      const groups = Array.from(counts, (n) => (width === 0 ? 0 : Math.ceil(n / width)))
      const ends = [0]
      for (const n of groups) ends.push(ends.at(-1)! + n)
      expect(ends).toEqual(Array.from(indptr, Number))
      const packed = groups.flatMap((n, o) => Array.from(mine).slice(o * stride, o * stride + n * width))
      expect(packed).toEqual(Array.from(coordinates, Number))
      if (name === 'fused')
        expect(Array.from(memory.get(`${LIVE[s.format].loops[1]}_offsets`)!, Number)).toEqual(ends)
    }),
  3_600_000,
)

test('what nothing selects may be anything, and what is no number is kept', async () => {
  for (const format of ['panels(4, 2)', 'strips(4, 2)'] as const) {
    const name = format.startsWith('panels') ? 'panels' : 'strips'
    const dense = (shape: readonly number[], ...values: readonly number[]) =>
      ({ kind: 'dense', dtype: 'f32', shape, values: Float32Array.from(values) }) as const
    const A = dense([2, 4], 1, -0, 0, 0, 0, -0, 0, Number.NaN)
    const B = dense([4, 1], 5, Number.NaN, Number.POSITIVE_INFINITY, 2)
    // Written before: −0 is 1 · −0, what is no number is 0 · ∞.
    const X = dense([2, 4], 1, -1, 0, -1, 0, 1, -1, 0)
    const M = dense([2, 4], 1, 0, 1, 0, 2, -0, 0, Number.POSITIVE_INFINITY)
    const masked = KERNELS.left
      .replace('A: f32[i, q] in', 'X: f32[i, q] in buffer M: f32[i, q] in buffer A: f32[i, q] local')
      .replace('iterate mul', 'iterate mask [i, q] as SS { A[i, q] = X[i, q] * M[i, q] } iterate mul')
    for (const [kernel, tensors] of [
      [KERNELS.left, { A, B }],
      [masked, { X, M, B }],
    ] as const)
      for (const device of [createCpuDevice(), webgpu]) {
        const text = `${LIVE[name].text}\n${kernel}\nschedule product.live { A as ${format} live in place }`
        const compiled = await parseProgram(text).kernel().schedule('live').compile(device)
        const { C } = await compiled.run({ tensors })
        expect(Array.from((C as { values: ArrayLike<number> }).values)).toEqual([5, Number.NaN])
      }
  }
})

test.each(
  (Object.keys(LIVE) as (keyof typeof LIVE)[]).flatMap((f) => SCHEDULES.map((name) => [f, name] as const)),
)('two launches of blocks of threads build %s, and one more where lists are one loop: %s', (format, name) => {
  const nests = name === 'live' ? 2 : 3
  for (const kernel of Object.keys(KERNELS) as (keyof typeof KERNELS)[])
    fc.assert(
      fc.property(numbers, (n) => {
        const s = live(new Choices(n), format, kernel)
        const blocks = (of: Compilation): readonly number[] =>
          of.parallel().plan.steps.map((x) => (x.kind === 'launch' ? x.block.reduce((a, b) => a * b) : 0))
        const as = parseProgram(s.text).kernel().schedule(name)
        const launches = blocks(as.compilation)
        checkRanges(as.compilation.parallel().plan, new Map(['m', 'n', 'k'].map((size) => [size, 4096])))
        const own = launches.filter((x) => x > 0)
        // What is summed over lists may start at 0 before.
        if (name === 'live') expect(own.length).toBe(3 + s.writers)
        expect(launches.length - own.length).toBeLessThan(2)
        const built = own.slice(s.writers, s.writers + nests)
        for (const threads of built) expect(threads, s.text).toBeGreaterThanOrEqual(128)
        // A sketch of the others leaves them as they are.
        const sketched = as.automaticForms('cuda')[0]
        if (sketched)
          expect(
            blocks(sketched.kernel.compilation)
              .filter((x) => x > 0)
              .slice(s.writers, s.writers + nests),
          ).toEqual(built)
      }),
      parameters(2),
    )
})

/** Copies that threads read a vector of elements into stand inside of the reduction over a word, and combine nothing. */
test.each(['panels(1, 4)', 'strips(8, 1)', 'rows_of(2, 3)', 'blocks(1, 4)'] as const)(
  'the schedules that come with the nests keep every invariant: %s',
  (format) => {
    const [name] = format.split('(') as [keyof typeof LIVE]
    const text = `${LIVE[name].text}\n${KERNELS.left}\nschedule product.s { A as ${format} live in place }`
    const c = parseProgram(text).kernel().schedule('s').compilation.parallel()
    expect(c.loops.body.flatMap((s) => loopsOf([s])).some((l) => l.mode.kind === 'vectorize')).toBe(true)
    verifyStage(c.loops)
    c.observe(verifyPass, { lanes: 32 })
  },
)

test('a capacity that is just enough, and one that is not', async () => {
  await fc.assert(
    fc.asyncProperty(numbers, async (n) => {
      const c = new Choices(n)
      const s = live(c, undefined, c.pick(['left', 'relu']))
      return told(s, async () => {
        const [m, cols, k] = s.sizes
        const bound = bindInputs(scheduled(s, 'live').kernel, s.inputs)
        const memory = runLoops(scheduled(s, 'live').loops, bound, 'forward')
        const list = memory.get(`${LIVE[s.format].list}_of_A`)!
        const counts = listedIn(memory, s)
        const axis = LIVE[s.format].loops[1]
        const isGrouped = axis === 'go'
        const width = isGrouped ? Number(/\(\d+, (\d+)\)/.exec(s.text.split('product.live')[1]!)![1]) : 1
        const needed = Math.max(0, ...counts.map((x) => Math.ceil(x / width)))
        const withRoom = (room: number, over: string) =>
          s.text.replaceAll('live in place', `live in place capacity ${room}${over}`)
        const name = c.pick(SCHEDULES)
        await agreeOnAll(scheduled({ text: withRoom(needed, ' + 0 * k') }, name), s.inputs)
        const enough = parseProgram(withRoom(needed, ' + 0 * k')).kernel().schedule('live')
        await agreeOnAll(enough.compilation, s.inputs)
        const stored = runLoops(enough.compilation.loops, bound, 'forward').get(
          `${LIVE[s.format].list}_of_A`,
        )!
        expect(stored.length).toBeLessThanOrEqual(list.length)
        const device = c.below(8) === 0 ? webgpu : createCpuDevice()
        for (const room of needed > 0 ? [needed, needed - 1] : [0]) {
          const tight = parseProgram(withRoom(room, '')).kernel().schedule('live')
          // Lists end where there is no more room, and none goes on in the next one.
          const mine = runLoops(tight.compilation.loops, bound, 'backward').get(
            `${LIVE[s.format].list}_of_A`,
          )!
          for (const [o, count] of counts.entries()) {
            const [a, b] = [list, mine].map((x) => Array.from(x).slice((o * x.length) / counts.length))
            const listed = Math.min(count, room * width)
            expect(b!.slice(0, listed)).toEqual(a!.slice(0, listed))
          }
          const compiled = await parseProgram(withRoom(room, '')).kernel().schedule(name).compile(device)
          const prepared = await compiled.prepare({ tensors: s.inputs.tensors! })
          try {
            const ran = prepared.run().then(
              () => 'right',
              (e: SptError) => {
                const [{ code, message, span }] = e.diagnostics as [Diagnostic]
                return `${code}: ${message}: ${withRoom(room, '').slice(span?.start, span?.end)}`
              },
            )
            if (room < needed)
              expect(await ran).toMatch(
                new RegExp(
                  `^run/overflow: product found ${needed} positions of ${axis}, and there is room for ${room} \\(.*: A as .* capacity ${room}$`,
                ),
              )
            else expect(await ran).toBe('right')
            // What fits is there, and a run that needs less is right again.
            const nothing = { ...s.inputs.tensors![s.source]!, values: new Float32Array(m * k) }
            await prepared.write(s.source, nothing as never)
            if (m * k > 0) await prepared.run()
            const { values } = (await prepared.read('C')) as { values: ArrayLike<number> }
            if (m * k > 0)
              expect(Array.from(values, (x) => x + 0)).toEqual(Array.from({ length: m * cols }, () => 0))
          } finally {
            prepared.free()
          }
        }
      })
    }),
    parameters(5),
  )
}, 3_600_000)

test('a capacity is part of the step', () => {
  const text = `${LIVE.panels.text}\n${KERNELS.left}
schedule product.s(w = 2) { A as panels(2, w) live in place capacity min(ceildiv(k, 4), 3 * w) }`
  const kernel = parseProgram(text).kernel()
  const given = kernel.live('A', 'panels', 2, 2, { capacity: 3 })
  expect(printedSteps(given.compilation)).toEqual(['A as panels(2, 2) live in place capacity 3'])
  for (const k of [given, kernel.schedule('s')]) {
    const again = parseProgram(text)
      .kernel()
      .replay(JSON.parse(JSON.stringify(k)))
    expect(printedSteps(again.compilation)).toEqual(printedSteps(k.compilation))
    expect(again.show(1)).toBe(k.show(1))
  }
  expect(printedSteps(kernel.schedule('s').compilation)).toEqual([
    'A as panels(2, 2) live in place capacity min(ceildiv(k, 4), 6)',
  ])
})

test('a list that is under no axis', async () => {
  const text = `format held(b) over (i) {
  axis io = sparse_variable(ceildiv(i, b))
  axis ii = dense_fixed(b)
  map (i) -> (i / b, i % b)
  inverse (io, ii) -> (io * b + ii)
}
kernel product(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  buffer x: f32[i] in
  buffer A: f32[i, j] in
  buffer y: f32[j] out
  iterate sum [j, i] as SR { y[j] += x[i] * A[i, j] }
}
schedule product.live { x as held(3) live in place }`
  const c = parseProgram(text).kernel().schedule('live').compilation
  expect(c.parallel().plan.steps.filter((s) => s.kind === 'launch').length).toBe(3)
  await fc.assert(
    fc.asyncProperty(numbers, async (n) => {
      const choices = new Choices(n)
      const [m, cols] = [choices.pick([0, 1, 95, 97, 3073, 200]), choices.pick([1, 3])]
      const dense = (shape: readonly number[], values: Float32Array) =>
        ({ kind: 'dense', dtype: 'f32', shape, values }) as const
      const A = Float32Array.from({ length: m * cols }, (_, k) => k % 7)
      const tensors = { x: dense([m], matrix(choices, m)), A: dense([m, cols], A) }
      await agreeOnAll(c, { tensors })
    }),
    parameters(6),
  )
})

test('a tensor that comes in, is added to and goes out', async () => {
  const kernel = KERNELS.left
    .replace('A: f32[i, q] in', 'X: f32[i, q] in buffer A: f32[i, q] inout')
    .replace('iterate mul', 'iterate add [i, q] as SS { A[i, q] += X[i, q] } iterate mul')
  await fc.assert(
    fc.asyncProperty(numbers, async (n) => {
      const c = new Choices(n)
      const s = live(c, undefined, 'left')
      const { A, B } = s.inputs.tensors! as never as Record<string, { readonly values: Float32Array }>
      // What was there may be gone, and there may be what was not.
      const added = s.other()
      const values = A!.values.map((x, e) => (e % 2 === 0 && added[e] ? -x : added[e]!))
      const X = { ...A, values }
      const compilation = scheduled({ text: s.text.replace(KERNELS.left, kernel) }, 'live')
      return told(s, () => agreeOnAll(compilation, { tensors: { A, B, X } as never }))
    }),
    parameters(10),
  )
}, 3_600_000)

/** A device that counts the programs and buffers that are made on it. */
function counted(of: Device): { readonly device: Device; readonly made: { compile: number; alloc: number } } {
  const made = { compile: 0, alloc: 0 }
  const device = new Proxy(of, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      return (...args: unknown[]): unknown => {
        if (name === 'compile' || name === 'alloc') made[name]++
        return value.apply(target, args)
      }
    },
  })
  return { device, made }
}

test.each([false, true])(
  'one prepared plan takes every pattern, on webgpu: %s',
  (gpu) =>
    property(gpu ? 3 : 8, async (s, choices) => {
      const kernel = parseProgram(s.text).kernel().schedule(choices.pick(SCHEDULES))
      const c = kernel.compilation
      // Nothing is told to the host: what is built is used where it is.
      expect(c.parallel().plan.buffers.filter((b) => b.name.includes('lost'))).toEqual([])
      const { device, made } = counted(gpu ? webgpu : createCpuDevice())
      const compiled = await kernel.compile(device)
      const prepared = await compiled.prepare({ tensors: s.inputs.tensors! })
      await prepared.run()
      const first = { ...made }
      try {
        for (let run = 0; run < 10; run++) {
          const changed = { ...s.inputs.tensors![s.source]!, values: s.other() } as never
          await prepared.write(s.source, changed)
          await prepared.run()
          const bound = bindInputs(c.kernel, { tensors: { ...s.inputs.tensors, [s.source]: changed } })
          const { C } = reference(c.source, referenceInputs(c.source, bound)).buffers
          const got = (await prepared.read('C')) as { values: ArrayLike<number> }
          expect(Array.from(got.values, (x) => x + 0)).toEqual(Array.from(C!.values, (x) => x + 0))
        }
        expect(made).toEqual(first)
        expect(Math.min(first.compile, first.alloc)).toBeGreaterThan(0)
      } finally {
        prepared.free()
      }
    }),
  3_600_000,
)

const TILED = `
schedule product.tiled {
  A as panels(8, 4) live in place
  split mul.j by 4 -> (jb, jt)
  split mul.ii by 2 -> (iw, ir)
  reorder (mul.io, jb, iw, jt, mul.go, mul.ji, ir)
  bind mul.io to block.x, jb to block.y, iw to thread.y, jt to thread.x
  cache_write C at jt in register
  cache_read A at mul.go in shared padded 0 -> As
  cache_read B at mul.go in shared padded 0 -> Bs
  pipeline mul.go by 2
}
schedule product.dealt {
  A as panels(8, 4) live in place
  fuse (mul.io, mul.go) -> g
  atomic C
  split g by 3 -> (round, b)
  split mul.j by 4 -> (jb, jt)
  split mul.ii by 2 -> (iw, ir)
  reorder (b, jb, round, iw, jt, mul.ji, ir)
  bind b to block.x, jb to block.y, iw to thread.y, jt to thread.x
  cache_read B at round in shared padded 0 -> Bs
}
schedule product.direct {
  A as panels(8, 4) live in place
  fuse (mul.io, mul.go) -> g
  atomic C
  split mul.j by 4 -> (jb, jt)
  reorder (g, jb, mul.ii, jt, mul.ji)
  bind g to block.x, jb to block.y, mul.ii to thread.y, jt to thread.x
}`

test.each(['tiled', 'dealt', 'direct'])(
  'tiles of gathered columns are what loops over them are, and what nvcc compiles: %s',
  async (name) => {
    const products = (n: readonly number[]): Live => live(new Choices(n), 'panels', 'left')
    const c = parseProgram(`${products([]).text}${TILED}`)
      .kernel()
      .schedule(name).compilation
    const parallel = c.parallel()
    let gpu = false
    if (!noNvcc) expect(compileCuda(parallel.texts('cuda').map((t) => t.text))).toBe('')
    await fc.assert(
      fc.asyncProperty(numbers, (n) => {
        const s = products(n)
        gpu = !gpu
        return told(s, async () => {
          if (!gpu) return agreeOnAll(c, s.inputs)
          const bound = bindInputs(c.kernel, s.inputs)
          const expected = reference(c.source, referenceInputs(c.source, bound)).buffers
          await agreeOnDevice(webgpu, parallel, bound, expected)
        })
      }),
      parameters(name === 'tiled' ? 16 : 8),
    )
  },
  3_600_000,
)

test('a fixed grid takes all groups in turn, to the last one that there is', () => {
  const s = live(new Choices([]), 'panels', 'left')
  const kernel = parseProgram(`${s.text}${TILED}`).kernel()
  const dealt = kernel.schedule('dealt')
  expect(dealt.show(2)).toContain('for round in 0..ceildiv(go_offsets[ceildiv(m, 8)], 3)')
  const last = dealt.compilation.parallel().plan.steps.findLast((x) => x.kind === 'launch')!
  expect(last.kind === 'launch' && last.grid[0]).toMatchObject({ kind: 'const', value: 3 })
  const conditions: string[] = []
  let loops = 0
  if (last.kind === 'launch')
    walkStmts(last.body, (x) => {
      if (x.kind === 'if') conditions.push(printExpr(x.cond))
      if (x.kind === 'for' && x.name === 'round') loops++
    })
  expect(loops).toBe(1)
  // Rounds end there: nothing is asked in them.
  expect(conditions.filter((x) => x.includes('< go_offsets'))).toEqual([])
  const all = kernel.schedule('direct').show(2)
  expect(all).toContain('for g in 0..ceildiv(m, 8) * ceildiv(k, 4)')
  expect(all).toContain('where g < go_offsets[ceildiv(m, 8)]')
})

test('lists under two axes, in one loop', async () => {
  const text = `format deep(h, s) over (i, j) {
  axis ao = dense_fixed(ceildiv(i, 3 * h))
  axis io = dense_fixed(ao, 3)
  axis go = dense_variable(io, j)
  axis jo = sparse_fixed(go, j, s)
  axis ii = dense_fixed(jo, h)
  map (i, j) -> (i / h / 3, i / h % 3, rank(j by i / h / 3, i / h % 3) / s, j, i % h)
  inverse (ao, io, go, jo, ii) -> ((ao * 3 + io) * h + ii, jo)
}
${KERNELS.left}
schedule product.s(h = 2, s = 2) { A as deep(h, s) live in place fuse (mul.ao, mul.io, mul.go) -> g }
schedule product.two { A as deep(2, 2) live in place fuse (mul.io, mul.go) }`
  const kernel = parseProgram(text).kernel()
  const { code, message, hint } = diagnosticOf(() => kernel.schedule('two'))
  expect([code, message, hint]).toEqual([
    'schedule/not-a-chain',
    'axis go is not stored under axis io',
    'go is counted for each of ao, io: fuse (ao, io, go)',
  ])
  await fc.assert(
    fc.asyncProperty(numbers, async (n) => {
      const c = new Choices(n)
      const s = live(c, 'panels', 'left')
      const { compilation } = kernel.schedule('s', c.pick([1, 2, 4]), c.pick([1, 3]))
      return told(s, () => agreeOnAll(compilation, s.inputs))
    }),
    parameters(10),
  )
}, 3_600_000)

/** What is computed of listed coordinates alone, and what others see of it. */
const GATED = `format rows(w) over (i, j) {
  axis io = dense_fixed(i)
  axis go = dense_variable(io, j)
  axis jo = sparse_fixed(go, j, w)
  map (i, j) -> (i, rank(j by i) / w, j)
  inverse (io, go, jo) -> (io, jo)
}
kernel gated(m: size, n: size, k: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis q = dense_fixed(k)
  buffer A: f32[i, q] in
  buffer B: f32[i, j, q] in
  buffer H: f32[i, q] local
  buffer C: f32[q] out
  iterate sum [i, q, j] as SSR {
    if (A[i, q] != 0) { H[i, q] += B[i, j, q] }
  }
  iterate scatter [i, q] as RS { C[q] += A[i, q] * H[i, q] }
}
kernel seen(m: size, n: size, k: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis q = dense_fixed(k)
  buffer A: f32[i, q] in
  buffer B: f32[i, j, q] in
  buffer H: f32[i, q] local
  buffer C: f32[q] out
  iterate sum [i, q, j] as SSR {
    if (A[i, q] != 0) { H[i, q] += B[i, j, q] }
  }
  iterate scatter [i, q] as RS { C[q] += H[i, q] + 1.0 }
}`
const GATES = {
  apart: ['', ''],
  fused: ['fuse (sum.io, sum.go) -> g fuse (scatter.io, scatter.go) -> g', ''],
  // Of two nests over one list, one alone.
  half: ['fuse (scatter.io, scatter.go) -> g', ''],
  dealt: [
    'fuse (sum.io, sum.go) -> g fuse (scatter.io, scatter.go) -> g',
    'atomic C split sum.g by 3 -> (round, b) reorder (b, round, sum.jo) bind b to block.x, sum.jo to thread.x cache_write H at sum.jo in register -> Hr compute_at scatter at sum.jo cache_write H at sum.jo in register',
  ],
  // By who visits all coordinates.
  seen: ['', ''],
  // Of a block that is listed, not each element holds something.
  blocks: ['', ''],
} as const

test.each(Object.keys(GATES) as (keyof typeof GATES)[])(
  'temporaries have room for what is listed, and nothing asks again: %s',
  (name) => {
    const of = (w: number) => {
      const [first, then] = GATES[name]
      const kernel = name === 'seen' ? 'seen' : 'gated'
      const format = name === 'blocks' ? `blocks(${w}, 2)` : `rows(${w})`
      const steps = `A as ${format} live in place ${first} ${then}`
      return parseProgram(`${LIVE.blocks.text}\n${GATED}\nschedule ${kernel}.s { ${steps} }`)
        .kernel(kernel)
        .schedule('s')
    }
    const text = of(4).show(1)
    const axes = name === 'blocks' ? 'io, jo, ii, ji' : 'io, go, jo'
    expect(text).toContain(`buffer H: f32[${axes}] local`)
    expect(text.includes('if (')).toBe(name === 'blocks')
    // What no position has is nowhere, and nothing is filled.
    if (name !== 'blocks') expect(of(4).show(2)).not.toContain('fill H')
    return fc.assert(
      fc.asyncProperty(numbers, async (n) => {
        const c = new Choices(n)
        const [m, cols, k] = [sizeOf(c, 2), c.pick([0, 1, 5]), sizeOf(c, 4)]
        const dense = (values: Float32Array, ...shape: number[]) =>
          ({ kind: 'dense', dtype: 'f32', shape, values }) as const
        const B = Float32Array.from({ length: m * cols * k }, (_, e) => (e * 7) % 5)
        const tensors = { A: dense(matrix(c, m * k), m, k), B: dense(B, m, cols, k) }
        const { compilation } = of(c.pick([1, 2, 4]))
        if (name !== 'dealt') return agreeOnAll(compilation, { tensors })
        const bound = bindInputs(compilation.kernel, { tensors })
        const expected = reference(compilation.source, referenceInputs(compilation.source, bound)).buffers
        await agreeOnDevice(webgpu, compilation.parallel(), bound, expected)
      }),
      parameters(name === 'dealt' ? 4 : 10),
    )
  },
  3_600_000,
)

/** A block has the words of a list. */
const ONE_LAUNCH = `
schedule product.one {
  join (mark_A, place_A) at mark_A.io
  bind joined.io to block.x
  split jo_word by 32 -> (wc, wl)
  split wc by 2 -> (wo, wr)
  bind wr to thread.y, wl to thread.x
  split jo_chunk by 2 -> (co, cr)
  bind cr to thread.y
  split jo_any by 32 -> (ao, al)
  bind al to thread.x
  cache_write counts_A at cr in register
  split jo_earlier by 32 -> (eo, el)
  bind el to thread.x
  cache_write bases_A at cr in register
  bind size_A.jo_part to thread.x, place_A.jo_part to thread.x
  cache_write starts_A at place_A.jo_part in register
}`

test('what marks and what places are one launch where their outer loops are joined', async () => {
  const c = (s: Live): Compilation =>
    parseProgram(`${s.text}${ONE_LAUNCH.replace('{', `{ ${/A as .*place/.exec(s.text)![0]}`)}`)
      .kernel()
      .schedule('one').compilation
  let gpu = false
  await fc.assert(
    fc.asyncProperty(numbers, (n) => {
      const choices = new Choices(n)
      const s = live(choices, choices.pick(['panels', 'strips', 'blocks']), 'left')
      gpu = !gpu
      return told(s, async () => {
        const compilation = c(s)
        if (!gpu) return agreeOnAll(compilation, s.inputs)
        const parallel = compilation.parallel()
        expect(parallel.plan.steps.filter((x) => x.kind === 'launch').length).toBe(2)
        const bound = bindInputs(compilation.kernel, s.inputs)
        const expected = reference(compilation.source, referenceInputs(compilation.source, bound)).buffers
        expect(await agreeOnDevice(webgpu, parallel, bound, expected)).toBe(true)
      })
    }),
    parameters(8),
  )
}, 3_600_000)

const KERNEL = `kernel product(m: size, k: size) {
  axis i = dense_fixed(m)
  axis q = dense_fixed(k)
  axis r = sparse_variable(i, k)
  buffer A: f32[i, q] in
  buffer S: f32[i, r] in
  buffer C: f32[i] out
  buffer D: f32[i, q] out
  iterate mul [i, q] as SR { C[i] += A[i, q] }
  iterate take [i, r] as SR { C[i] += S[i, r] }
  iterate all [i, q] as SS { D[i, q] = A[i, q] + 1.0 }
}`

/** The refusal of a step on the kernel above, as its first line. */
function refusal(step: string, kernel = KERNEL): string {
  const formats = Object.values(LIVE).map((f) => f.text)
  const more = `format claimed(b) over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_variable(io, ceildiv(j, b))
  axis ji = dense_fixed(jo, b) full
  map (i, j) -> (i, j / b, j % b)
  inverse (io, jo, ji) -> (io, jo * b + ji)
}
format overlapping(b) over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_variable(io, ceildiv(j, b))
  axis ji = dense_fixed(jo, b + 1)
  map (i, j) -> (i, j / b, j % b)
  inverse (io, jo, ji) -> (io, jo * b + ji)
}
format ell(w) over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_fixed(io, j, w)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
format coo over (i, j) {
  axis io = sparse_variable(i) nonunique
  axis jo = sparse_fixed(io, j, 1)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
format later(h, s) over (i, j) {
  axis io = dense_fixed(ceildiv(i, h))
  axis go = dense_variable(io, j)
  axis jo = sparse_fixed(go, j, s)
  axis ii = dense_fixed(jo, h)
  map (i, j) -> (i / h, rank(j by i) / s, j, i % h)
  inverse (io, go, jo, ii) -> (io * h + ii, jo)
}`
  try {
    const text = `${formats.join('\n')}\n${more}\n${kernel}\nschedule product.s { ${step} }`
    void parseProgram(text).kernel().schedule('s').compilation.kernel
  } catch (e) {
    if (!(e instanceof SptError)) throw e
    const [d] = e.diagnostics
    return `${d!.code}${d!.span && d!.expected && d!.hint ? '' : ', without help'}: ${d!.message}`
  }
  return 'none'
}

test.each([
  ['D as panels(2, 2)', 'schedule/live-tensor: D of product is written by all, and nothing reads it'],
  ['S as panels(2, 2)', 'schedule/live-tensor: S of product is over r'],
  [
    'A as claimed(2)',
    'schedule/live-format: the structure of claimed(2) cannot be found in each run: ji is claimed full',
  ],
  ['A as overlapping(2)', 'its coordinates of q are not made of digits'],
  ['A as ell(2)', 'jo is no list of groups'],
  ['A as coo', 'it has no list of coordinates, or several'],
  ['A as later(2, 2)', 'go does not count groups of 2 listed coordinates by their rank'],
  ['A as panels(2, 2) where (value > 0) + blocks(2, 2)', 'it has several parts'],
])('%s live in place: %s', (step, expected) => {
  const told = refusal(`${step} live in place`)
  expect(told).toContain(expected)
  expect(told).not.toContain('without help')
})

const WRITERS = `kernel product(m: size, k: size) {
  axis i = dense_fixed(m)
  axis q = dense_fixed(k)
  buffer A: f32[i, q] in
  buffer U: f32[i, q] local
  buffer V: f32[i, q] local
  buffer W: f32[i, q] inout
  buffer H: f32[i, q] local
  buffer C: f32[i] out
  buffer D: f32[i, q] out
  iterate put [i, q] as SS { U[i, q] = A[i, q] V[i, q] = A[i, q] H[i, q] = max(A[i, q], 0.0) }
  iterate grow [i, q] as SS { U[i, q] = max(U[i, q], 0.0) }
  iterate take [i, q] as SR { C[i] += U[i, q] * V[i, q] * W[i, q] }
  iterate again [i, q] as SS { V[i, q] = A[i, q] W[i, q] = A[i, q] }
  iterate all [i, q] as SS { D[i, q] = H[i, q] + 1.0 }
}`

test.each([
  ['U', 'schedule/live-tensor: U of product is read and written by grow'],
  ['V', 'schedule/live-tensor: V of product is written again by again after take reads it'],
  ['W', 'schedule/live-tensor: W of product is read by take before again writes it'],
  ['H', 'schedule/format-padding: panels(2, 2) leaves out coordinates of H that hold its fill value'],
])('%s, which the kernel writes: %s', (tensor, expected) => {
  const told = refusal(`${tensor} as panels(2, 2) live in place`, WRITERS)
  expect(told).toContain(expected)
  expect(told).not.toContain('without help')
})

test('of two that are found, the temporary comes first: what holds only what another list has is looked through no more', async () => {
  const text = `${LIVE.blocks.text}
kernel product(m: size, k: size) {
  axis i = dense_fixed(m)
  axis q = dense_fixed(k)
  buffer A: f32[i, q] in
  buffer H: f32[i, q] local
  buffer C: f32[i] out
  iterate twice [i, q] as SS { if (A[i, q] != 0) { H[i, q] = A[i, q] * 2 } }
  iterate sum [i, q] as SR { if (A[i, q] != 0) { C[i] += H[i, q] } }
}
schedule product.before { A as blocks(2, 2) live in place H as blocks(2, 3) live in place }
schedule product.after { H as blocks(2, 3) live in place A as blocks(2, 2) live in place }`
  const kernel = parseProgram(text).kernel()
  expect(diagnosticOf(() => kernel.schedule('before'))).toMatchObject({
    code: 'schedule/live-tensor',
    hint: 'find the structure of H first: its step before that of A',
  })
  expect(diagnosticOf(() => kernel.live('A', 'blocks', 2, 2).mask('twice', 'A'))).toMatchObject({
    code: 'schedule/mask',
    hint: 'put the mask before the step that has A live',
  })
  const values = matrix(new Choices([1, 4]), 5 * 7)
  const A = { kind: 'dense', dtype: 'f32', shape: [5, 7], values } as const
  await agreeOnAll(kernel.schedule('after').compilation, { tensors: { A } })
})

test('a capacity is over sizes and parameters', () => {
  expect(refusal('A as panels(2, 2) live in place capacity m / z')).toContain(
    'check/unknown-name, without help: there is no z here',
  )
  expect(refusal('A as panels(2, 2) live in place capacity m < 2')).toContain('check/argument-type')
  expect(refusal('A as panels(2, 2) live in place capacity m / 2', KERNELS.left)).toBe('none')
})
