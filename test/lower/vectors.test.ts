/** What schedules require of sizes, accesses to neighbours at once, and rounds that are whole. */

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { coords, devices, load } from '../../src/node.ts'
import { runs } from '../support/cases.ts'

const TEXT = `
kernel product(m: size, n: size, d: size) {
  axis i  = dense_fixed(m)
  axis j  = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis f  = dense_fixed(d)
  buffer A: f32[i, j] in
  buffer B: f32[jd, f] in
  buffer C: f32[i, f] out
  iterate sum [i, j, f] as SRS { C[i, f] += A[i, j] * B[j, f] }
}
schedule product.rows(lanes = 2) {
  split f by 4 * lanes -> (fo, fi)
  split fi by 4 -> (fl, fv)
  reorder (i, fo, fl, j, fv)
  bind i to block.x, fo to block.y, fl to thread.x
  cache_write C at fl in register
  vectorize fv
}
schedule product.any { use rows }
schedule product.unrolled {
  split f by 4 -> (fo, fv)
  reorder (i, fo, j, fv)
  bind i to block.x, fo to block.y
  cache_write C at fo in register
  unroll fv
}
schedule product.fours {
  require d % 4 == 0
  use rows
}
schedule product.eight {
  require d == 8
  use rows
}
schedule product.twelve {
  require d % 4 == 0
  require d % 3 == 0
  split f by 12 -> (fo, fi)
}
schedule product.turns(by = 3, ahead = 2) {
  split j by by -> (jq, jg)
  reorder (i, f, jg, jq)
  bind i to block.x, f to block.y, jg to thread.x
  unroll jq by ahead
}
schedule product.ahead(by = 4) {
  reorder (i, f, j)
  cache_write C at f in register
  unroll j by by predicated
}
schedule product.ahead_in_place(by = 4) { unroll j by by predicated }
schedule product.shared_sums {
  require d % 4 == 0
  split f by 4 -> (fo, fv)
  split j by 2 -> (jq, jg)
  reorder (i, fo, jg, jq, fv)
  bind i to block.x, jg to thread.x
  unroll fv
}
schedule product.atomic_sums {
  fuse (i, j) -> e
  require d % 4 == 0
  atomic C
  split f by 4 -> (fo, fv)
  bind e to block.x, fo to block.y
  unroll fv
}
`
const program = await load(TEXT)
const kernel = (name: string, ...args: number[]) => program.kernel().schedule(name, ...args)
const cuda = (name: string, ...args: number[]): string => kernel(name, ...args).emit('cuda')[0]!.text
const wgsl = (name: string): string => kernel(name).emit('wgsl')[0]!.text

const graph = fc.record({
  m: fc.integer({ min: 1, max: 6 }),
  n: fc.integer({ min: 1, max: 9 }),
  seed: fc.nat(),
  entries: fc.uniqueArray(fc.tuple(fc.nat(5), fc.nat(8)), {
    maxLength: 40,
    selector: ([i, j]) => `${i} ${j}`,
  }),
})
type Graph = typeof graph extends fc.Arbitrary<infer T> ? T : never

function inputs({ m, n, entries, seed }: Graph, d: number) {
  const kept = entries.filter(([i, j]) => i < m && j < n)
  const A = coords(
    [m, n],
    [Int32Array.from(kept, (e) => e[0]), Int32Array.from(kept, (e) => e[1])],
    Float32Array.from(kept, ([i, j]) => ((7 * i + 3 * j + seed) % 5) - 2),
  )
  return {
    tensors: { A, B: Float32Array.from({ length: n * d }, (_, k) => ((k + seed) % 7) - 3) },
    params: { m, n, d },
  }
}

describe('require', () => {
  test('removes guards', () => {
    expect(cuda('any')).toMatch(/ \+ 1 < d/)
    expect(cuda('fours')).not.toMatch(/\+ 1 < d/)
    expect(cuda('eight')).not.toMatch(/int d\b/)
    expect(cuda('twelve')).not.toMatch(/< d\b/)
  })

  test('rejects other sizes before anything runs', async () => {
    const device = await devices.cpu()
    const compiled = await kernel('fours').build(device)
    const given = inputs({ m: 2, n: 2, seed: 1, entries: [[0, 1]] }, 6)
    await expect(compiled(...flatInputs(given))).rejects.toThrow(
      /run\/requirement|requires d % 4 == 0, and d is 6/,
    )
    compiled.release()
  })

  test.each([
    ['require e % 4 == 0', /no size e/],
    ['require d % 0 == 0', /cannot be required/],
  ])('%s is rejected', async (step, message) => {
    const file = await load(`${TEXT}\nschedule product.wrong { ${step} }`)
    expect(() => file.kernel().schedule('wrong').emit('js')).toThrow(message)
  })
})

describe('neighbouring accesses', () => {
  test('are vectorised if sizes allow it', () => {
    expect(cuda('fours')).toContain('*(const float4*)(B + ')
    expect(cuda('fours')).toMatch(/float4\*\)__builtin_assume_aligned\(C/)
    expect(cuda('unrolled')).not.toContain('float4')
    expect(wgsl('fours')).toContain('B: array<vec4<f32>>')
    expect(wgsl('unrolled')).toContain('B: array<f32>')
  })

  test('sums across threads are added and stored as vectors', () => {
    const text = cuda('shared_sums')
    expect(text).toMatch(/float4\*\)__builtin_assume_aligned\(C/)
    expect(text).not.toContain('__syncthreads')
  })

  test('atomic updates as well', () => {
    expect(cuda('atomic_sums')).toMatch(/add_4\(C \+ /)
    expect(cuda('atomic_sums')).not.toMatch(/atomicAdd\(&C/)
  })

  test('stored elements are read again', async () => {
    const twice = await load(`
kernel twice(d: size) {
  axis i = dense_fixed(d)
  buffer x: f32[i] inout
  buffer y: f32[i] out
  iterate steps [i] as S { x[i] = x[i] + 1 y[i] = x[i] * 2 }
}
schedule twice.fours {
  require d % 4 == 0
  split i by 4 -> (io, iv)
  unroll iv
}`)
    const { text } = twice.kernel().schedule('fours').emit('cuda')[0]!
    expect(text).toContain('*(const float4*)')
    expect(text.match(/y\[.*\] = x\[.*\] \* 2/g)).toHaveLength(4)
  })

  test('give equal results on a device with vectors', async () => {
    const device = await devices.webgpu()
    const compiled = await Promise.all(['fours', 'eight', 'shared_sums'].map((n) => kernel(n).build(device)))
    await fc.assert(
      fc.asyncProperty(graph, async (g) => {
        for (const c of compiled) {
          const prepared = await c.bind(...flatInputs(inputs(g, 8)))
          expect((await prepared.verify()).ok).toBe(true)
          prepared.free()
        }
      }),
      { numRuns: runs(4) },
    )
  })
})

describe('iterations', () => {
  test('of strided thread loops end without a guard', () => {
    expect(kernel('turns').show(3)).not.toMatch(/if .*jq/)
  })

  test('that are full load together and write only existing elements', () => {
    const text = cuda('ahead')
    expect(text).toMatch(/\? next/)
    expect(text.match(/for \(int j/g)).toHaveLength(1)
  })

  test('agree with the reference', async () => {
    const device = await devices.cpu()
    const cases = fc.tuple(
      fc.constantFrom('turns', 'ahead', 'ahead_in_place', 'twelve'),
      fc.integer({ min: 2, max: 5 }),
    )
    await fc.assert(
      fc.asyncProperty(graph, cases, async (g, [name, by]) => {
        const compiled = await kernel(name, ...(name === 'twelve' ? [] : [by])).build(device)
        const prepared = await compiled.bind(...flatInputs(inputs(g, 12)))
        expect((await prepared.verify()).ok).toBe(true)
        prepared.free()
        compiled.release()
      }),
      { numRuns: runs(30) },
    )
  })
})
