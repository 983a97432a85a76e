/** One schedule for all sizes: vectors where they are aligned and whole, elements where they are not. */

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { add, eq, int, load as loadOf, lt, mod, mul, variable } from '../../src/ir/expressions/expr.ts'
import type { Stmt } from '../../src/ir/statements/loops.ts'
import { forLoop, when } from '../../src/ir/statements/statement-builders.ts'
import { stmt } from '../../src/ir/statements/tree.ts'
import { eliminateConstantBranches } from '../../src/lower/specialise/constant-branches.ts'
import { type Built, coords, type Device, dense, devices, load } from '../../src/node.ts'
import { agreeOnAll } from '../properties/agree.ts'
import { runs } from '../support/cases.ts'
import { compileTogether, noNvcc } from '../support/nvcc.ts'

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
schedule product.rows(each = 4) {
  split f by 2 * each -> (fo, fi)
  split fi by each -> (fl, fv)
  reorder (i, fo, fl, j, fv)
  bind i to block.x, fo to block.y, fl to thread.x
  cache_write C at fl in register
  vectorize fv
}
schedule product.ahead(each = 4) {
  use rows(each)
  unroll j by 2 predicated
}
schedule product.fours(each = 4) {
  require d % 4 == 0
  use rows(each)
}
schedule product.shared(each = 4) {
  split f by 2 * each -> (fo, fi)
  split fi by each -> (fl, fv)
  split j by 4 -> (jo, ji)
  reorder (i, fo, jo, fl, ji, fv)
  bind i to block.x, fo to block.y, fl to thread.x
  cache_write C at fl in register
  cache_read A at jo in shared
  vectorize fv
}
schedule product.atomic_sums(each = 4) {
  fuse (i, j) -> e
  atomic C
  split f by each -> (fo, fv)
  bind e to block.x, fo to block.y
  vectorize fv
}

// Two sizes that decide about alignment, and tiles that are filled by all threads.
kernel dense(m: size, n: size, k: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis p = dense_fixed(k)
  buffer X: f32[i, p] in
  buffer W: f32[p, j] in
  buffer Y: f32[i, j] out
  iterate product [i, j, p] as SSR { Y[i, j] += X[i, p] * W[p, j] }
}
schedule dense.tiles(each = 4) {
  tile (i, j) by (8, 8) -> (io, jo, ii, ji)
  split ji by each -> (jt, jv)
  split p by 8 -> (po, pi)
  reorder (io, jo, ii, jt, po, pi, jv)
  bind io to block.y, jo to block.x, ii to thread.y, jt to thread.x
  cache_write Y at jt in register
  cache_read X at po in shared by each
  cache_read W at po in shared by each padded 0
  vectorize jv
}

// No size decides about alignment; the last vector may not be whole.
kernel twice(d: size) {
  axis i = dense_fixed(d)
  buffer x: f32[i] in
  buffer y: f32[i] out
  iterate each [i] as S { y[i] = 2 * x[i] }
}
schedule twice.threads(each = 4) {
  split i by each -> (io, iv)
  split io by 8 -> (b, t)
  bind b to block.x, t to thread.x
  vectorize iv
}

// The last lane of a vector is the first where the condition holds.
kernel mirrored(d: size) {
  axis i = dense_fixed(d)
  buffer x: f32[i] in
  buffer y: f32[i] out
  iterate each [i] as S where (d - i < 6) { y[i] = 2 * x[i] }
}
schedule mirrored.lanes(each = 4) {
  split i by each -> (io, iv)
  bind io to block.x
  vectorize iv
}
`
const program = await load(TEXT)
const text = (kernel: string, name: string, target: 'cuda' | 'wgsl' = 'cuda', each = 4): string =>
  program.kernel(kernel).schedule(name, each).emit(target)[0]!.text

const SCHEDULES = [
  ['product', 'rows'],
  ['product', 'ahead'],
  ['product', 'shared'],
  ['product', 'atomic_sums'],
  ['dense', 'tiles'],
  ['twice', 'threads'],
  ['mirrored', 'lanes'],
] as const

/** The lines of the text that are in a loop, and not just before it. */
function inLoops(source: string): string {
  const lines = source.split('\n')
  let loop = -1
  return lines
    .filter((l) => {
      const indent = l.search(/\S/)
      if (loop >= 0 && indent <= loop) loop = -1
      if (loop >= 0) return true
      if (/^\s*for \(/.test(l)) loop = indent
      return false
    })
    .join('\n')
}

describe('a size that determines alignment', () => {
  test('is tested once, outside the loops', () => {
    for (const name of ['rows', 'ahead']) {
      const source = text('product', name)
      expect(source.match(/d % 4 == 0/g)).toHaveLength(1)
      expect(source).toContain('*(const float4*)(B + ')
      expect(source).toMatch(/float4\*\)__builtin_assume_aligned\(C/)
      const loops = inLoops(source)
      expect(loops).toContain('float4')
      expect(loops).not.toMatch(/if \(.*\) \{\n.*float4/)
    }
  })

  test('is not tested if the schedule requires it, and vectors of two test for two', () => {
    expect(text('product', 'fours')).not.toMatch(/d % /)
    expect(text('product', 'rows', 'cuda', 2)).toMatch(/d % 2 == 0/)
    expect(text('product', 'rows', 'cuda', 2)).toContain('*(const float2*)(B + ')
  })

  test('does not duplicate shared memory', () => {
    const source = text('product', 'shared')
    expect(source.match(/__shared__/g)).toHaveLength(1)
    expect(source).toContain('*(const float4*)(B + ')
    expect(source).toMatch(/float4\*\)__builtin_assume_aligned\(C/)
  })

  test('is tested for every such size', () => {
    const source = text('dense', 'tiles')
    expect(source).toMatch(/n % 4 == 0/)
    expect(source).toMatch(/k % 4 == 0/)
    expect(source).toContain('*(const float4*)(X + ')
    expect(source).toContain('*(const float4*)(W + ')
    expect(source.match(/__shared__/g)).toHaveLength(2)
  })

  test('vectorises atomic updates too', () => {
    expect(text('product', 'atomic_sums')).toMatch(/add_4\(C \+ /)
    expect(text('product', 'atomic_sums')).toContain('atomicAdd(')
  })
})

test('a loop that may end within a vector tests all lanes at once', () => {
  const source = text('twice', 'threads')
  expect(source).toMatch(
    /const int (at_\d+) = at_\d+ \+ 3;[\s\S]*const bool (test\w*) = \1 < d;[\s\S]*if \(\2\) \{\s*const float4/,
  )
  expect(source).not.toMatch(/d % 4/)
})

test('a condition that excludes inner lanes is tested per lane', async () => {
  const holes = await load(`
kernel holes(m: size, n: size) {
  axis i = dense_fixed(m)
  axis f = dense_fixed(n)
  buffer X: f32[i, f] in
  buffer Y: f32[i, f] out
  iterate all [i, f] as SS { if (f != 1) { Y[i, f] = X[i, f] } }
}
schedule holes.fours {
  require n % 4 == 0
  split f by 4 -> (fo, fi)
  vectorize fi
}`)
  const X = dense(
    [2, 8],
    Float32Array.from({ length: 16 }, (_, k) => k + 1),
  )
  await agreeOnAll(holes.kernel().schedule('fours').compilation, { tensors: { X } })
})

test('neighbours under one condition share facts that hold unconditionally', () => {
  const cond = lt(variable('x'), variable('d'))
  const put = (name: string, value: number) =>
    stmt<Stmt>({ kind: 'store', buffer: name, index: [int(0)], value: int(value) })
  const [one, two] = [put('a', 1), put('a', 2)] as const
  const [three, four] = [put('b', 1), put('b', 2)] as const
  expect(eliminateConstantBranches([when(cond, [one], [two]), when(cond, [three], [four])], [])).toEqual([
    when(cond, [one, three], [two, four]),
  ])
  expect(eliminateConstantBranches([one, two, when(cond, [one]), when(cond, [three])], [])).toEqual([
    one,
    two,
    when(cond, [one, three]),
  ])
  // What holds around a condition is a fact within.
  const fours = eq(mod(variable('d'), int(4)), int(0))
  const place = mul(variable('x'), int(4))
  expect(
    eliminateConstantBranches([when(fours, [when(lt(add(place, int(1)), variable('d')), [one])])], []),
  ).toEqual([when(fours, [when(lt(place, variable('d')), [one])])])
})

test('a condition that the extent of a loop implies is gone, unless the loop changes the extent', () => {
  const read = loadOf('n', [int(0)])
  const over = (buffer: string) => {
    const put = stmt<Stmt>({ kind: 'store', buffer, index: [int(0)], value: int(0) })
    return [put, forLoop('v', read, [when(lt(variable('v'), read), [put])])]
  }
  const [put] = over('a')
  expect(eliminateConstantBranches(over('a'), [])).toEqual([put, forLoop('v', read, [put!])])
  expect(eliminateConstantBranches(over('n'), [])).toEqual(over('n'))
})

test('WGSL: arrays that other sizes store by element are not arrays of vectors', () => {
  const source = text('product', 'rows', 'wgsl')
  expect(source).toContain('B: array<vec4<f32>>')
  expect(source).toContain('C: array<f32>')
  expect(text('product', 'fours', 'wgsl')).toContain('C: array<vec4<f32>>')
  expect(text('twice', 'threads', 'wgsl')).toContain('y: array<vec4<f32>>')
})

test.skipIf(noNvcc !== null)('CUDA C compiles', () => {
  const texts = SCHEDULES.map(([k, s]) => text(k, s))
  expect(compileTogether(texts)).toBe('')
})

// --- the same results for all sizes ---

const sizes = fc.record({
  m: fc.integer({ min: 1, max: 9 }),
  n: fc.integer({ min: 1, max: 9 }),
  d: fc.integer({ min: 1, max: 70 }),
  seed: fc.nat(),
  entries: fc.uniqueArray(fc.tuple(fc.nat(8), fc.nat(8)), {
    maxLength: 40,
    selector: ([i, j]) => `${i} ${j}`,
  }),
})
type Sizes = typeof sizes extends fc.Arbitrary<infer T> ? T : never

const values = (length: number, seed: number): Float32Array =>
  Float32Array.from({ length }, (_, k) => ((k + seed) % 7) - 3)

function inputs(kernel: string, { m, n, d, seed, entries }: Sizes) {
  if (['twice', 'mirrored'].includes(kernel)) return { tensors: { x: values(d, seed) }, params: { d } }
  if (kernel === 'dense')
    return {
      tensors: { X: values(m * d, seed), W: values(d * (n + 1), seed + 1) },
      params: { m, n: n + 1, k: d },
    }
  const kept = entries.filter(([i, j]) => i < m && j < n)
  const A = coords(
    [m, n],
    [Int32Array.from(kept, (e) => e[0]), Int32Array.from(kept, (e) => e[1])],
    values(kept.length, seed),
  )
  return { tensors: { A, B: values(n * d, seed) }, params: { m, n, d } }
}

async function agree(device: Device, usual: number): Promise<void> {
  const compiled: (readonly [string, Built])[] = []
  for (const [kernel, name] of SCHEDULES)
    for (const each of [2, 4])
      compiled.push([
        kernel,
        await program.kernel(kernel).schedule(name, each).build(device, { auto: false }),
      ] as const)
  await fc.assert(
    fc.asyncProperty(sizes, fc.constantFrom(...compiled), async (s, [kernel, c]) => {
      const prepared = await c.bind(...flatInputs(inputs(kernel, s)))
      expect((await prepared.verify()).ok).toBe(true)
      prepared.free()
    }),
    { numRuns: runs(usual) },
  )
  for (const [, c] of compiled) c.release()
}

describe('all sizes agree with the reference', () => {
  test('in JavaScript', async () => agree(await devices.cpu(), 250))

  test('on WebGPU', async () => agree(await devices.webgpu(), 150), 240_000)
})
