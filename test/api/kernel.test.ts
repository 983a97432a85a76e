/** Kernels as values: chained calls, handles, traces, undo. */
import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { type Kernel, load } from '../../src/node.ts'
import { runs, scaled } from '../support/cases.ts'
import { kernel, program } from './support.ts'

let k: Kernel
beforeAll(async () => {
  k = await kernel()
})
const stages = (x: Kernel): string[] => [x.show(1), x.show(2), x.show(3)]

describe('programs', () => {
  test('list their declarations', async () => {
    const p = await program()
    expect(p.kernels).toEqual(['mul'])
    expect([...p.formats.keys()]).toEqual(['bsr'])
    expect(p.kernel().schedules).toEqual(['gpu', 'blocked'])
    expect(p.kernel('mul').parameters('blocked')).toEqual([{ name: 'b', required: true }])
    expect(p.kernel('mul').parameters('gpu')).toEqual([{ name: 'rows', required: false }])
    expect(p.kernel().steps('gpu', 16)).toHaveLength(5)
  })
})

describe('steps', () => {
  test('chained calls are the schedule of the file', () => {
    const chained = k
      .reorder('i', 'f', 'j')
      .split('i', 8, ['io', 'ii'])
      .reorder('io', 'f', 'ii', 'j')
      .bind({ io: 'block.x', f: 'block.y', ii: 'thread.x' })
      .cacheWrite('C', 'ii', 'register')
    const named = k.schedule('gpu', 8)
    expect(chained.trace).toEqual(named.trace)
    expect(stages(chained)).toEqual(stages(named))
    expect(k.apply(k.steps('gpu', 8)).show(3)).toBe(named.show(3))
    expect(k.as('A', 'bsr', 2).show(1)).toBe(k.schedule('blocked', 2).show(1))
  })

  test('leave the kernel as it was', () => {
    const before = stages(k)
    k.split('i', 4).unroll('ii')
    k.as('A', 'bsr', 4)
    expect(stages(k)).toEqual(before)
    expect(k.trace).toEqual([])
  })

  test('handles survive steps on other loops', () => {
    const f = k.loop('f')
    const j = k.loop('j')
    const later = k.split('i', 4, ['row', 'within']).reorder('row', 'within', f, j).split(f, 8)
    expect(later.unroll(j, 2).show(2)).toMatch(/for j in .*unroll/)
    expect(later.reorder('row', 'within', 'fo', 'fi', j).trace.at(-1)).toContain('fi')
  })

  test('a handle of a loop that is gone says where it went', () => {
    const i = k.loop('i')
    expect(() => k.split('i', 4).unroll(i)).toThrow(/schedule\/.*\bi\b/)
  })

  test('steps on coordinates cannot follow steps on loops', () => {
    expect(() => k.split('i', 2).as('A', 'bsr', 2)).toThrow(/schedule\/too-late/)
    expect(() => k.split('i', 2).attach('j', 'i')).toThrow(/schedule\/too-late/)
  })
})

type Call = (x: Kernel) => Kernel
const calls: readonly Call[] = [
  (x) => x.reorder('i', 'f', 'j'),
  (x) => x.as('A', 'bsr', 2),
  (x) => x.split('i', 4),
  (x) => x.split('f', 3, ['fa', 'fb']),
  (x) => x.unroll('j', 2),
  (x) => x.tile(['i', 'f'], [2, 2]),
  (x) => x.vectorize('fi'),
  (x) => x.cacheWrite('C', 'f', 'register'),
  (x) => x.rfactor('j'),
  (x) => x.bind({ io: 'block.x' }),
  (x) => x.parallel(),
]
/** The calls that are legal in this order, each with the kernel before it. */
function legal(order: readonly number[]): { readonly before: Kernel[]; readonly last: Kernel } {
  const before: Kernel[] = []
  let last = k
  for (const n of order) {
    try {
      const next = calls[n]!(last)
      if (next !== last) before.push(last)
      last = next
    } catch {
      // Not legal here.
    }
  }
  return { before, last }
}
const orders = fc.array(fc.nat(calls.length - 1), { maxLength: 6 })

describe('properties', () => {
  test('undo takes the latest step back', () => {
    let steps = 0
    fc.assert(
      fc.property(orders, (order) => {
        const { last } = legal(order)
        let now = last
        for (let n = last.trace.length; n > 0; n--) {
          const undone = now.undo()
          expect(undone.trace).toEqual(last.trace.slice(0, n - 1))
          expect(undone.show(2)).toBe(k.replay(undone.toJSON()).show(2))
          now = undone
          steps++
        }
        expect(stages(now)).toEqual(stages(k))
        expect(now.undo().trace).toEqual([])
      }),
      { numRuns: runs(20) },
    )
    expect(steps).toBeGreaterThan(scaled(8))
  })

  test('a trace names the loops of handles in the language’s syntax', async () => {
    const program = await load(`kernel k(m: size) {
      axis i = dense_fixed(m)
      axis j = dense_fixed(m)
      buffer a: i32[i, j] in
      buffer y: i32[i, j] out
      buffer z: i32[i, j] out
      iterate p [i, j] as SS { y[i, j] = a[i, j] }
      iterate q [i, j] as SS { z[i, j] = y[i, j] }
    }`)
    const plain = program.kernel()
    const split = plain.split(plain.loop('q.i'), 2)
    const steps = split.bind({ io: 'block.x' }).unroll(split.loop('ii'))
    expect(steps.trace).toEqual(['split q.i by 2', 'bind io to block.x', 'unroll ii'])
    expect(() => plain.unroll(plain.loop('p.i'))).toThrow(/step 1: unroll p\.i/)
  })

  test('a trace travels as JSON and replays', () => {
    fc.assert(
      fc.property(orders, (order) => {
        const { last } = legal(order)
        const again = k.replay(JSON.parse(JSON.stringify(last)))
        expect(again.trace).toEqual(last.trace)
        expect(stages(again)).toEqual(stages(last))
      }),
      { numRuns: runs(20) },
    )
  })
})

test('the code of each target', () => {
  const gpu = k.schedule('gpu')
  expect(gpu.emit('wgsl')[0]!.text).toContain('@compute @workgroup_size(4, 1, 1)')
  expect(gpu.emit('cuda')[0]!.text).toContain('extern "C" __global__')
  expect(k.emit('js')[0]!.entries[0]!.args.map((a) => a.name)).toEqual(
    expect.arrayContaining(['A', 'B', 'C', 'j_indptr', 'j_indices', 'd']),
  )
})
