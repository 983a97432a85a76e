import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { interpretPlan } from '../../src/interpret/stage3.ts'
import { evaluate } from '../../src/ir/values/evaluate.ts'
import { buffersOf, packBuffers } from '../../src/lower/launches/buffer-packing.ts'
import { coords, dense, devices, load, SptError } from '../../src/node.ts'
import { lanesOf } from '../../src/run/compile/lowering-options.ts'
import type { Device } from '../../src/runtime/device.ts'
import { verify3 } from '../../src/verifiers/stage3.ts'
import { runs } from '../support/cases.ts'
import { property } from '../support/property.ts'

/** `k` sparse operands of one launch: 3 k + 1 buffers; `values` may give some of them other types. */
function text(k: number, values: readonly string[] = []): string {
  const ks = Array.from({ length: k }, (_, n) => n)
  return `kernel many(m: size, n: size) {
  axis i = dense_fixed(m)
  axis c = dense_fixed(n)
${ks.map((n) => `  axis j${n} = sparse_variable(i, n)\n  buffer A${n}: ${values[n] ?? 'f32'}[i, j${n}] in`).join('\n')}
  buffer C: f32[i, c] out
  iterate all [i, c] as SS {
    C[i, c] = ${ks.map((n) => `${n + 1} * f32(A${n}[i, c])`).join(' + ')}
  }
}`
}

const M = 5
const N = 7

/** Integer entries, of which no two share a coordinate. */
const matrix = fc
  .uniqueArray(fc.tuple(fc.nat(M - 1), fc.nat(N - 1)), { maxLength: 12, selector: (p) => p.join() })
  .chain((at) =>
    fc.tuple(fc.constant(at), fc.array(fc.integer({ min: -9, max: 9 }), { minLength: 12, maxLength: 12 })),
  )

type Matrix = [[number, number][], number[]]

const tensorOf = ([at, values]: Matrix) =>
  coords([M, N], [at.map((p) => p[0]), at.map((p) => p[1])], values.slice(0, at.length))

function expected(operands: readonly Matrix[]): number[] {
  const out = new Array<number>(M * N).fill(0)
  operands.forEach(([at, values], k) => {
    at.forEach(([i, c], e) => {
      out[i * N + c]! += (k + 1) * values[e]!
    })
  })
  return out
}

const inputs = (operands: readonly Matrix[]) => ({
  tensors: Object.fromEntries(operands.map((o, k) => [`A${k}`, tensorOf(o)])),
  params: { m: M, n: N },
})

/** What is written to the output of a number, and to the next one. */
const STATEMENTS = [
  (y: string) => `${y}[i] = z`,
  (y: string) => `${y}[i] = Z[i] * 3 - z`,
  (y: string) => `if (z > 0) { ${y}[i] = z } else { ${y}[i] = 7 }`,
  (y: string) => `iterate sum${y} [p] as R { ${y}[i] += X[i, p] }`,
  (y: string) => `iterate most${y} [p] as R { ${y}[i] max= X[i, p] * z }`,
  (y: string) => `${y}[i] = 2`,
] as const
const outputs = (statements: readonly ((y: string) => string)[], steps: string): string => `
kernel outputs(n: size, m: size) {
  axis i = dense_fixed(n)
  axis p = dense_fixed(m)
  buffer X: i32[i, p] in
  buffer Z: i32[i] in
${statements.map((_, k) => `  buffer y${k}: i32[i] out`).join('\n')}
  buffer last: i32[i] out
  iterate e [i] as S {
    let z = Z[i] * 2
    ${statements.map((s, k) => s(`y${k}`)).join('\n    ')}
    iterate ends [p] as R { last[i] += X[i, p] }
  }
}
schedule outputs.s { ${steps} }`

/** One after the other, each from a multiple of four elements on. */
const padded = (arrays: readonly (readonly number[])[]): number[] =>
  arrays.flatMap((a) => [...a, ...new Array<number>((4 - (a.length % 4)) % 4).fill(0)])

describe('packing', () => {
  property([fc.array(matrix, { minLength: 2, maxLength: 6 }), fc.integer({ min: 3, max: 20 })], {
    numRuns: runs(40),
  })('keeps the result, and stays within the limit if it succeeds', async (operands, limit) => {
    const cpu = limited(await devices.cpu(), limit)
    const kernel = (await load(text(operands.length))).kernel()
    const compiled = await kernel.build(cpu)
    const { plan } = packBuffers(compiled.compilation.planFor(lanesOf(cpu)), limit)
    verify3(plan)
    expect(compiled.program.plan.steps.length).toBe(plan.steps.length)
    for (const s of plan.steps)
      if (s.kind === 'launch') expect(buffersOf(plan, s).length).toBeLessThanOrEqual(limit)
    const { C } = await compiled(...flatInputs(inputs(operands)))
    expect([...C!.values!]).toEqual(expected(operands))
  })

  test('keeps a plan that fits, and packs index arrays first, no more than needed', async () => {
    const { plan } = (await load(text(3))).kernel().compilation
    expect(packBuffers(plan, 10)).toEqual({ plan, arenas: [] })
    const names = (limit: number): string[][] =>
      packBuffers(plan, limit).arenas.map((a) => a.members.map((m) => m.buffer.name))
    expect(names(9)).toEqual([['j0_indptr', 'j0_indices']])
    expect(names(5)).toEqual([
      ['j0_indptr', 'j0_indices', 'j1_indptr', 'j1_indices', 'j2_indptr', 'j2_indices'],
    ])
    expect(names(4)).toContainEqual(['A0', 'A1'])
    expect(names(3)).toContainEqual(['A0', 'A1', 'A2'])
  })

  test('places each array after the previous ones', async () => {
    const { plan } = (await load(text(3))).kernel().compilation
    const { arenas } = packBuffers(plan, 3)
    const params = new Map([
      ['m', 4],
      ['n', 9],
      ['j0_count', 10],
      ['j1_count', 0],
      ['j2_count', 7],
    ])
    for (const a of arenas) {
      let at = 0
      for (const m of a.members) {
        expect(evaluate(m.offset, params)).toBe(at)
        at += 4 * Math.ceil(evaluate(m.buffer.shape[0]!, params) / 4)
      }
      expect(evaluate(a.buffer.shape[0]!, params)).toBe(at)
    }
  })

  test('runs in the interpreter of plans as well', async () => {
    const { plan } = (await load(text(2))).kernel().compilation
    const { plan: packed, arenas } = packBuffers(plan, 4)
    const arrays: Record<string, number[]> = {
      j0_indptr: [0, 1, 2],
      j0_indices: [1, 0],
      j1_indptr: [0, 0, 2],
      j1_indices: [0, 1],
      A0: [5, 6],
      A1: [7, 8],
    }
    const params = new Map([
      ['m', 2],
      ['n', 2],
      ['j0_count', 2],
      ['j1_count', 2],
    ])
    const memory = new Map<string, number[]>()
    for (const b of packed.buffers) {
      const arena = arenas.find((a) => a.buffer.name === b.name)
      memory.set(
        b.name,
        arena ? padded(arena.members.map((m) => arrays[m.buffer.name]!)) : (arrays[b.name] ?? [0, 0, 0, 0]),
      )
    }
    for (const a of arenas) for (const m of a.members) params.set(m.base, evaluate(m.offset, params))
    interpretPlan(packed, memory, params)
    expect(memory.get('C')).toEqual([0, 5, 6 + 14, 16])
  })

  test('buffers that cannot be packed are rejected, with the names', async () => {
    const writes = `kernel outputs(n: size) {
  axis i = dense_fixed(n)
${[0, 1, 2, 3, 4].map((k) => `  buffer y${k}: f32[i] inout`).join('\n')}
  iterate all [i] as S { ${[0, 1, 2, 3].map((k) => `y${k}[i] = y${k + 1}[i] * 2`).join('\n')} }
}`
    const kernel = (await load(writes)).kernel()
    const failed = await kernel.build(limited(await devices.cpu(), 4)).catch((e: unknown) => e)
    expect(failed).toBeInstanceOf(SptError)
    const [d] = (failed as SptError).diagnostics
    expect(d!.code).toBe('plan/too-many-buffers')
    expect(d!.message).toMatch(/^iteration all uses 5 buffers \(y0, y1, y2, y3, y4\)/)
    expect(d!.hint).toContain('a statement that reads the output of another')
  })

  test('iterations in one loop are separated by the step of the hint', async () => {
    const writes = `kernel outputs(n: size) {
  axis i = dense_fixed(n)
  axis j = dense_fixed(2)
${[0, 1, 2, 3, 4].map((k) => `  buffer y${k}: f32[i, j] inout`).join('\n')}
  iterate w [i] as S {
    iterate a [j] as S { y0[i, j] = y1[i, j]  y1[i, j] = y2[i, j] }
    iterate b [j] as S { y2[i, j] = y3[i, j]  y3[i, j] = y4[i, j] }
  }
}`
    const cpu = await devices.cpu()
    const compiled = async (steps: string): Promise<unknown> =>
      (await load(`${writes}\nschedule outputs.s { ${steps} }`)).kernel().schedule('s').build(limited(cpu, 3))
    const failed = await compiled('').catch((e: unknown) => e)
    const [step] = (failed as SptError).diagnostics[0]!.hint!.split(', ')
    expect(step).toBe('fission w.i after a')
    expect(await compiled(step!)).not.toBeInstanceOf(SptError)
  })

  property(
    [
      fc.array(fc.constantFrom(...STATEMENTS), { minLength: 4, maxLength: 9 }),
      fc.integer({ min: 3, max: 6 }),
      fc.constantFrom('', 'split e.i by 4 -> (a, b)  bind a to block.x, b to thread.x', 'unroll e.i by 2'),
    ],
    { numRuns: runs(30) },
  )('launches that write too many buffers are split', async (statements, limit, steps) => {
    const text = outputs(statements, steps)
    const kernel = (await load(text)).kernel().schedule('s')
    const X = dense(
      [7, 5],
      Int32Array.from({ length: 35 }, (_, e) => (e % 11) - 5),
    )
    const Z = dense([7], Int32Array.of(1, -2, 3, 0, 5, -6, 7))
    const run = async (device: Device) => {
      const prepared = await (await kernel.build(device, { auto: false })).bind({ X, Z })
      await prepared.run()
      return Promise.all(statements.map(async (_, k) => [...(await prepared.get(`y${k}`)).values!]))
    }
    const cpu = await devices.cpu()
    const want = await run(cpu)
    try {
      expect(await run(limited(cpu, limit))).toEqual(want)
    } catch (e) {
      if (!(e instanceof SptError)) throw e
      expect(e.diagnostics[0]!.code).toBe('plan/too-many-buffers')
      // Two inputs, and at most two outputs that depend on each other.
      expect(limit).toBeLessThan(4)
    }
  })

  test('new values of a packed input are written to their place only', async () => {
    const operands: Matrix[] = [
      [[[0, 0]], [3]],
      [
        [
          [1, 1],
          [2, 2],
        ],
        [4, 5],
      ],
      [[[3, 3]], [6]],
    ]
    const compiled = await (await load(text(3))).kernel().build(limited(await devices.cpu(), 3))
    const prepared = await compiled.bind(...flatInputs(inputs(operands)))
    await prepared.executable.write('A1', Float32Array.of(7, 8))
    await prepared.run()
    operands[1]![1] = [7, 8]
    expect([...(await prepared.get('C')).values!]).toEqual(expected(operands))
    expect([...(await prepared.executable.values('A1'))]).toEqual([7, 8])
    expect([...(await prepared.executable.values('j2_indices'))]).toEqual([3])
    await prepared.executable.write('A1', Float32Array.of(4, 5))
    await prepared.run()
    operands[1]![1] = [4, 5]
    expect([...(await prepared.get('C')).values!]).toEqual(expected(operands))
    prepared.free()
  })
})

describe('on webgpu', () => {
  let device: Device
  beforeAll(async () => {
    device = await devices.webgpu()
  })
  afterAll(() => device.dispose())

  const sample: Matrix[] = Array.from({ length: 9 }, (_, k) => [
    k === 6
      ? []
      : [
          [k % M, (2 * k) % N],
          [(k + 1) % M, (3 * k + 1) % N],
        ],
    [k - 6, 2 * k + 1],
  ])

  test('more operands than bindings give exact results', async () => {
    const { maxBuffersPerLaunch } = device.limits
    for (const k of [4, 9]) {
      const compiled = await (await load(text(k))).kernel().build(device)
      const buffers = compiled.program.plan.texts.map(
        (t) => t.entries[0]!.args.filter((a) => a.kind === 'buffer').length,
      )
      expect(Math.max(...buffers)).toBeLessThanOrEqual(maxBuffersPerLaunch)
      expect(compiled.program.plan.packed.length > 0).toBe(3 * k + 1 > maxBuffersPerLaunch)
      const { C } = await compiled(...flatInputs(inputs(sample.slice(0, k))))
      expect([...C!.values!]).toEqual(expected(sample.slice(0, k)))
      compiled.release()
    }
  })

  test('operands of several types, in as few bindings as a browser has', async () => {
    const types = ['f32', 'f16', 'i8', 'f32', 'i32', 'f16', 'i8', 'u8']
    const compiled = await (await load(text(8, types))).kernel().build(limited(device, 8))
    const prepared = await compiled.bind(...flatInputs({ ...inputs(sample.slice(0, 7)), seed: 5 }))
    expect(await prepared.verify()).toMatchObject({ ok: true, maxAbsoluteError: 0 })
    prepared.free()
  })

  test('a dense operand beside packed ones', async () => {
    const source = text(5)
      .replace('  buffer C:', '  buffer B: f32[c] in\n  buffer C:')
      .replace('C[i, c] =', 'C[i, c] = B[c] +')
    const compiled = await (await load(source)).kernel().build(device)
    const b = Array.from({ length: N }, (_, k) => 100 * k)
    const all = inputs(sample.slice(0, 5))
    const { C } = await compiled(...flatInputs({ ...all, tensors: { ...all.tensors, B: dense([N], b) } }))
    expect([...C!.values!]).toEqual(expected(sample.slice(0, 5)).map((v, p) => v + b[p % N]!))
  })
})

/** The same device under a smaller limit: its methods stay its own. */
function limited(device: Device, maxBuffersPerLaunch: number): Device {
  return new Proxy(device, {
    get: (target, key) => {
      if (key === 'limits') return { ...target.limits, maxBuffersPerLaunch }
      const value = Reflect.get(target, key, target) as unknown
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
