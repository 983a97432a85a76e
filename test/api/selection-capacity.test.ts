/** Schedules that are chosen in runs and whose lists have no room for what they find: another one runs instead. */

import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { type Binding, type Device, dense, devices, load } from '../../src/node.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { KERNELS, LIVE } from '../properties/live-gen.ts'
import { costly } from '../support/cases.ts'
import { errorOf } from './support.ts'

let webgpu: Device
beforeAll(async () => {
  webgpu = await createNodeWebGpu()
})
afterAll(() => webgpu.dispose())

interface Case {
  readonly format: keyof typeof LIVE
  readonly sizes: readonly [m: number, n: number, k: number]
  readonly capacity: number
  readonly inAll: boolean
  readonly patterns: readonly { readonly share: number; readonly seed: number }[]
}
const size = (max: number) => fc.integer({ min: 1, max })
const cases = (most: number): fc.Arbitrary<Case> =>
  fc.record({
    format: fc.constantFrom(...(Object.keys(LIVE) as Case['format'][])),
    sizes: fc.tuple(size(9), size(3), size(9)),
    capacity: fc.integer({ min: 0, max: 5 }),
    inAll: fc.boolean(),
    patterns: fc.array(fc.record({ share: fc.constantFrom(0, 0.1, 0.3, 1), seed: fc.nat(999) }), {
      minLength: 1,
      maxLength: most,
    }),
  })

function pattern(length: number, share: number, seed: number): Float32Array {
  let state = seed * 7919 + 1
  return Float32Array.from({ length }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32 < share ? (state % 5) + 1 : 0
  })
}

/** What has no room is passed over in the same run. */
async function followed(on: Device, { format, sizes, capacity, inAll, patterns }: Case): Promise<void> {
  const [m, n, k] = sizes
  const [outer, counted] = LIVE[format].loops
  const program = await load(`${LIVE[format].text}
${KERNELS.left}
schedule product.live {
  A as ${format}(2, 2) live in place capacity ${capacity}${inAll ? ` in all\n  fuse (mul.${outer}, mul.${counted}) -> g` : ''}
}
schedule product.plain { split mul.j by 2 }
schedule product.auto choose {
  when (fill_ratio(A, ${format}(2, 2)) < 0.9) live
  otherwise plain
}`)
  const B = dense([k, n], pattern(k * n, 1, 5))
  const inputs = (A: Float32Array) => ({ tensors: { A: dense([m, k], A), B } })
  const of = async (schedule: string, device: Device) =>
    (await program.kernel().schedule(schedule).build(device)).bind(
      ...flatInputs(inputs(new Float32Array(m * k))),
    )
  const [live, plain] = await Promise.all(['live', 'plain'].map((s) => devices.cpu().then((d) => of(s, d))))
  let prepared: Binding | undefined
  for (const { share, seed } of patterns) {
    const A = pattern(m * k, share, seed)
    await live!.set('A', A)
    await plain!.set('A', A)
    await plain!.run()
    const fits = await live!.run().then(
      () => true,
      () => false,
    )
    const expected = (await plain!.get('C')).values
    if (prepared) await prepared.set('A', A)
    else prepared = await (await program.kernel().schedule('auto').build(on)).bind(...flatInputs(inputs(A)))
    for (let run = 0; run < 3; run++) {
      await prepared.run()
      expect((await prepared.get('C')).values).toEqual(expected)
      await prepared.awaitMeasurements()
      const { text, overflowedSchedule, fillRatios } = prepared.selection!
      const [ratio] = Object.values(fillRatios)
      const isBelow = ratio!.measured! < 0.9
      expect([text, overflowedSchedule]).toEqual([
        isBelow && fits ? 'live' : 'plain',
        isBelow && !fits ? 'live' : null,
      ])
    }
  }
  for (const p of [prepared, live, plain]) p?.free()
}

test('a run that exceeds the capacity is repeated with another schedule', async () => {
  const cpu = await devices.cpu()
  await fc.assert(
    fc.asyncProperty(cases(5), (c) => followed(cpu, c)),
    { numRuns: costly(12) },
  )
  await fc.assert(
    fc.asyncProperty(cases(2), (c) => followed(webgpu, c)),
    { numRuns: costly(1) },
  )
}, 3_600_000)

interface Several {
  readonly sizes: readonly [m: number, k: number]
  /** Of each schedule, in order: format, capacity, and of which format's share its condition asks. */
  readonly branches: readonly {
    readonly format: 'panels' | 'blocks' | 'rows_of'
    readonly capacity: number
    readonly asks: number
    readonly below: number
  }[]
  readonly hasPlain: boolean
  readonly how: 'run' | 'time' | 'verify' | 'prepare'
  readonly patterns: readonly { readonly share: number; readonly seed: number }[]
}
const several: fc.Arbitrary<Several> = fc.record({
  sizes: fc.tuple(size(7), size(7)),
  branches: fc.array(
    fc.record({
      format: fc.constantFrom('panels', 'blocks', 'rows_of'),
      capacity: fc.integer({ min: 1, max: 4 }),
      asks: fc.nat(2),
      below: fc.constantFrom(0.3, 0.7, 2),
    }),
    { minLength: 1, maxLength: 3 },
  ),
  hasPlain: fc.boolean(),
  how: fc.constantFrom('run', 'time', 'verify', 'prepare'),
  patterns: fc.array(fc.record({ share: fc.constantFrom(0, 0.1, 0.3, 1), seed: fc.nat(999) }), {
    minLength: 1,
    maxLength: 4,
  }),
})

/** First nothing, then everything, of which the runs of one tell nothing about the next. */
const FULL: Several = {
  sizes: [2, 6],
  branches: [
    { format: 'panels', capacity: 1, asks: 0, below: 2 },
    { format: 'blocks', capacity: 1, asks: 0, below: 2 },
    { format: 'rows_of', capacity: 1, asks: 0, below: 2 },
  ],
  hasPlain: true,
  how: 'run',
  patterns: [0, 1].map((share) => ({ share, seed: 1 })),
}
/** No run of the first tells the share that it is chosen by. */
const OTHERS: Several = {
  ...FULL,
  branches: [
    { format: 'panels', capacity: 1, asks: 1, below: 0.3 },
    { format: 'blocks', capacity: 4, asks: 1, below: 0.7 },
  ],
}

/** Of several schedules without room one after the other is passed over, whatever their conditions ask, until one has room. */
async function passesOver(on: Device, { sizes: [m, k], branches, hasPlain, how, patterns }: Several) {
  const program = await load(`${LIVE.panels.text}
${LIVE.blocks.text}
${LIVE.rows_of.text}
${KERNELS.left}
${branches.map((b, n) => `schedule product.live${n} { A as ${b.format}(2, 2) live in place capacity ${b.capacity} }`).join('\n')}
schedule product.plain { split mul.j by 2 }
schedule product.auto choose {
${branches
  .map(({ asks, below }, n) => {
    const when = `when (fill_ratio(A, ${branches[asks % branches.length]!.format}(2, 2)) < ${below})`
    return `  ${n === branches.length - 1 && !hasPlain ? 'otherwise' : when} live${n}`
  })
  .join('\n')}
${hasPlain ? '  otherwise plain' : ''}
}`)
  const B = dense([k, 2], pattern(k * 2, 1, 5))
  const inputs = (A: Float32Array) => ({ tensors: { A: dense([m, k], A), B } })
  const cpu = await devices.cpu()
  const each = ['plain', ...branches.map((_, n) => `live${n}`)]
  const kernels = await Promise.all(each.map((name) => program.kernel().schedule(name).build(cpu)))
  const compiled = await program.kernel().schedule('auto').build(on)
  let prepared: Binding | undefined
  for (const { share, seed } of [...patterns, { share: 0, seed: 0 }]) {
    const A = pattern(m * k, share, seed)
    /** What each gives alone, where it has room. */
    const alone = new Map<string, unknown>()
    for (const [n, name] of each.entries())
      alone.set(
        name,
        await kernels[n]!(...flatInputs(inputs(A))).then(
          ({ C }) => C!.values,
          () => null,
        ),
      )
    const expected = alone.get('plain')
    if (how === 'prepare') prepared?.free()
    if (prepared && how !== 'prepare') await prepared.set('A', A)
    else prepared = await compiled.bind(...flatInputs(inputs(A)))
    const p = prepared
    for (let run = 0; run < 3; run++) {
      const work = how === 'time' ? p.time(1) : how === 'verify' ? p.verify() : p.run()
      const refused = await work.then(
        () => null,
        (e: Error) => e.message,
      )
      if (refused === null) {
        expect((await p.get('C')).values).toEqual(expected)
        await p.awaitMeasurements()
        expect(alone.get(p.selection!.text)).toEqual(expected)
      } else {
        expect(refused).toContain('run/overflow')
        // The last one is for all.
        expect([hasPlain, alone.get(`live${branches.length - 1}`)]).toEqual([false, null])
      }
      await p.awaitMeasurements()
    }
    // What holds nothing has room everywhere, which is found out.
    if (share === 0) expect([p.selection!.text, p.selection!.overflowedSchedule]).toEqual(['live0', null])
  }
  prepared?.free()
}

test('every schedule without capacity is skipped, in every way to run', async () => {
  const cpu = await devices.cpu()
  await fc.assert(
    fc.asyncProperty(several, (c) => passesOver(cpu, c)),
    { numRuns: costly(6), examples: [[FULL], [{ ...FULL, how: 'verify', hasPlain: false }], [OTHERS]] },
  )
  await passesOver(webgpu, FULL)
}, 3_600_000)

test('errors of the alternative schedule are reported', async () => {
  const program = await load(`${LIVE.blocks.text}
${KERNELS.left}
schedule product.full { A as blocks(2, 2) live in place capacity 0 }
schedule product.other {
  require k % 4 == 0
  split mul.j by 2
}
schedule product.auto choose {
  when (fill_ratio(A, blocks(2, 2)) < 0.9) full
  otherwise other
}`)
  const choice = await program
    .kernel()
    .schedule('auto')
    .build(await devices.cpu())
  const matrix = (held: number) => dense([6, 5], new Float32Array(30).fill(1, 0, held))
  const prepared = await choice.bind({ A: matrix(0), B: dense([5, 1], new Float32Array(5)) })
  await prepared.run()
  await prepared.set('A', matrix(1))
  await expect(prepared.run()).rejects.toThrow('choose/requirement')
})

test.each([
  ['0.9', true],
  ['2', true],
  ['0.4', false],
] as const)('a run that updates a tensor takes the alternative: < %s', async (below, isBelow) => {
  const program = await load(`${LIVE.panels.text}
kernel added(m: size, k: size) {
  axis i = dense_fixed(m)
  axis q = dense_fixed(k)
  buffer A: f32[i, q] in
  buffer C: f32[i] inout
  iterate add [i, q] as SR { C[i] += A[i, q] }
}
schedule added.live { A as panels(1, 1) live in place capacity 2 }
schedule added.plain { split add.i by 2 }
schedule added.auto choose {
  when (fill_ratio(A, panels(1, 1)) < ${below}) live
  otherwise plain
}`)
  const cpu = await devices.cpu()
  const few = Float32Array.of(1, 0, 0, 0, 0, 0, 2, 0)
  const more = Float32Array.of(1, 1, 1, 0, 0, 0, 2, 0)
  const prepared = await (await program.kernel().schedule('auto').build(cpu)).bind({
    A: dense([2, 4], few),
    C: dense([2], Float32Array.of(10, 20)),
  })
  await prepared.run()
  expect([prepared.selection!.text, [...(await prepared.get('C')).values!]]).toEqual(['live', [11, 22]])
  await prepared.set('A', more)
  await prepared.run()
  const { text, overflowedSchedule } = prepared.selection!
  expect([text, overflowedSchedule]).toEqual(['plain', isBelow ? 'live' : null])
  expect([...(await prepared.get('C')).values!]).toEqual([14, 24])
  await prepared.set('A', few)
  await prepared.run()
  expect([prepared.selection!.text, prepared.selection!.overflowedSchedule]).toEqual(['live', null])
  expect([...(await prepared.get('C')).values!]).toEqual([15, 26])
  prepared.free()
})

describe('a schedule that stores what the kernel updates in another format', () => {
  const few = Float32Array.of(1, 0, 0, 0, 0, 0, 2, 0)
  const more = Float32Array.of(1, 1, 1, 0, 0, 0, 2, 0)
  const preparedWith = async (first: Float32Array, between = '') => {
    const program = await load(`${LIVE.panels.text}
${LIVE.residues.text.replace('sparse_variable(io, c)', 'dense_fixed(io, c)')}
kernel added(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer C: f32[i, j] inout
  iterate add [i, j] as SS { C[i, j] += A[i, j] }
}
schedule added.live { A as panels(1, 1) live in place capacity 2 }
schedule added.like { split add.i by 2 }
schedule added.apart { C as residues(1, 2) }
schedule added.auto choose {
  when (fill_ratio(A, panels(1, 1)) < 0.9) live
  ${between}
  otherwise apart
}`)
    const choice = await program
      .kernel()
      .schedule('auto')
      .build(await devices.cpu())
    return choice.bind({ A: dense([2, 4], first), C: dense([2, 4], new Float32Array(8)) })
  }
  const values = async (p: Binding) => [...(await p.get('C')).values!]

  test('is selected from the start if the other is known to exceed its capacity', async () => {
    const prepared = await preparedWith(more)
    for (const _ of [0, 1]) await prepared.run()
    expect([prepared.selection!.text, prepared.selection!.overflowedSchedule]).toEqual(['apart', 'live'])
    expect(Object.values(prepared.selection!.fillRatios)).toMatchObject([{ value: 0.5, source: 'given' }])
    expect(await values(prepared)).toEqual([...more].map((x) => 2 * x))
    prepared.free()
  })

  test('is not switched to: runs over capacity end before the update, with a reason', async () => {
    const prepared = await preparedWith(few)
    await prepared.run()
    await prepared.set('A', more)
    const refused = /apart, which would be chosen now, stores C in another format/
    const failed = async () => {
      const e = await errorOf(() => prepared.run())
      expect(e.diagnostics).toMatchObject([{ code: 'run/overflow', hint: expect.stringMatching(refused) }])
      return values(prepared)
    }
    const once = await failed()
    for (const _ of [0, 1]) expect(await failed()).toEqual(once)
    // Where there is room again it goes on.
    await prepared.set('A', few)
    await prepared.run()
    expect(await values(prepared)).toEqual(once.map((x, k) => x + few[k]!))
    prepared.free()
  })

  test('is skipped in favour of a schedule with the same storage', async () => {
    const prepared = await preparedWith(few, 'when (fill_ratio(A, panels(1, 1)) < 0.95) like')
    await prepared.run()
    await prepared.set('A', more)
    const before = await values(prepared)
    await prepared.run()
    expect([prepared.selection!.text, prepared.selection!.overflowedSchedule]).toEqual(['like', 'live'])
    expect(await values(prepared)).toEqual(before.map((x, k) => x + more[k]!))
    prepared.free()
  })
})

test('an overflow of the last branch is an error, whichever branch ran before', async () => {
  const program = await load(`${LIVE.panels.text}
${KERNELS.left}
schedule product.few { split mul.j by 2 }
schedule product.limited { A as panels(2, 2) live in place capacity 1 }
schedule product.auto choose {
  when (fill_ratio(A, panels(2, 2)) < 0.3) few
  otherwise limited
}`)
  const [m, n, k] = [4, 2, 8]
  const B = dense([k, n], pattern(k * n, 1, 5))
  const A = (share: number) => pattern(m * k, share, 3)
  for (const on of [await devices.cpu(), webgpu])
    for (const first of [0, 1]) {
      const fn = await program.kernel().schedule('auto').build(on)
      const b = await fn.bind({ A: dense([m, k], A(first)), B })
      for (const share of [first, 0, 1, 1, 0, 1]) {
        await b.set('A', A(share))
        if (share > 0) expect(await errorOf(() => b.run())).toMatchObject({ code: 'run/overflow' })
        else await b.run()
        expect(b.selection!.text).toBe(share > 0 ? 'limited' : 'few')
      }
      b.free()
      fn.release()
    }
})
