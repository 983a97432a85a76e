/** Blocks for which a pipelined loop does not run have a version of their own: nothing changes, however many rows are empty. */

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { coords, dense } from '../../src/api/inputs/tensors.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { loopsOf } from '../../src/ir/statements/definitions.ts'
import type { If, Kernel2 } from '../../src/ir/statements/loops.ts'
import { walkStmts } from '../../src/ir/statements/tree.ts'
import { LOOP_PASSES } from '../../src/lower/passes.ts'
import { devices, load } from '../../src/node.ts'
import type { Inputs } from '../../src/run/bind/index.ts'
import { agreeOnAll } from '../properties/agree.ts'
import { runs } from '../support/cases.ts'

const TEXT = `
kernel rows(m: size, n: size, d: size) {
  axis i  = dense_fixed(m)
  axis j  = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis f  = dense_fixed(d)
  buffer A: f32[i, j] in
  buffer B: f32[jd, f] in
  buffer bias: f32[i] in
  buffer S: f32[i, f] local
  buffer C: f32[i, f] out
  iterate sum [i, j, f] as SRS { S[i, f] += A[i, j] * B[j, f] }
  iterate after [i, f] as SS { C[i, f] = max(2 * S[i, f] + bias[i], -3) }
}
schedule rows.tiles(cols, depth) {
  split j by depth -> (jo, ji)
  split sum.f by cols -> (fo, fi)
}
// A row for each block.
schedule rows.blocks(cols, depth) {
  use tiles(cols, depth)
  reorder (sum.i, fo, fi, jo, ji)
  bind sum.i to block.x, fo to block.y, fi to thread.x
  compute_at after at fi
  cache_write S at fi in register
}
schedule rows.plain(cols, depth, stages) {
  use blocks(cols, depth)
  cache_read A at jo in shared -> As
  cache_read B at jo in shared -> Bs
  pipeline jo by stages
}
schedule rows.padded(cols, depth, stages) {
  use blocks(cols, depth)
  cache_read A at jo in shared padded 0 -> As
  cache_read B at jo in shared padded 0 -> Bs
  pipeline jo by stages
}
// Results leave through shared memory.
schedule rows.through(cols, depth, stages) {
  use blocks(cols, depth)
  cache_read A at jo in shared -> As
  cache_read B at jo in shared -> Bs
  cache_write C at fo in shared -> Cs
  pipeline jo by stages
}
// A block has several rows, one after the other.
schedule rows.serial(cols, depth, stages) {
  use tiles(cols, depth)
  split sum.i by 2 -> (io, ii)
  reorder (io, fo, ii, fi, jo, ji)
  bind io to block.x, fo to block.y, fi to thread.x
  compute_at after at fi
  cache_write S at fi in register
  cache_read A at jo in shared -> As
  cache_read B at jo in shared -> Bs
  pipeline jo by stages
}

kernel product(m: size, n: size, k: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis p = dense_fixed(k)
  buffer A: f32[i, p] in
  buffer B: f32[p, j] in
  buffer C: f32[i, j] out
  iterate sum [i, j, p] as SSR { C[i, j] += A[i, p] * B[p, j] }
}
schedule product.plain(cols, depth, stages) {
  split j by cols -> (jo, ji)
  split p by depth -> (po, pi)
  reorder (i, jo, ji, po, pi)
  bind i to block.x, jo to block.y, ji to thread.x
  cache_write C at ji in register
  cache_read B at po in shared -> Bs
  pipeline po by stages
}
`
const program = parseProgram(TEXT)
const SCHEDULES = ['plain', 'padded', 'through', 'serial'] as const

const scheduled = (kernel: string, name: string, args: readonly number[]) =>
  program.kernel(kernel).schedule(name, ...args)

/** Rows of such lengths. */
function inputsOf(lengths: readonly number[], n: number, d: number, seed: number): Inputs {
  const [m, value] = [lengths.length, (e: number): number => ((e * 31 + seed) % 9) - 4]
  const cells = lengths.flatMap((length, i) =>
    Array.from({ length: Math.min(length, n) }, (_, e) => [i, (seed + i + e) % n] as const).toSorted(
      (a, b) => a[1] - b[1],
    ),
  )
  const whole = (...shape: number[]) =>
    dense(
      shape,
      Float32Array.from({ length: shape.reduce((a, b) => a * b) }, (_, e) => value(e)),
    )
  const [rows, columns] = [cells.map((c) => c[0]), cells.map((c) => c[1])]
  const A = coords(
    [m, n],
    [rows, columns],
    Float32Array.from(cells, (_, e) => value(e)),
  )
  return { tensors: { A, B: whole(n, d), bias: whole(m) }, params: { m, n, d } }
}

/** The versions that the pass makes; other passes make some of whole tiles. */
function versionsOf(kernel: string, name: string, args: readonly number[]): readonly If[] {
  const branches = (k: Kernel2): If[] => {
    const out: If[] = []
    walkStmts(k.body, (s) => {
      if (s.kind === 'if' && s.else.length > 0) out.push(s)
    })
    return out
  }
  let k: Kernel2 = scheduled(kernel, name, args).compilation.loops
  for (const pass of LOOP_PASSES) {
    const before = k
    k = pass.run(before, {})
    if (pass.name === 'empty-loop-versioning') return branches(k).filter((s) => !branches(before).includes(s))
  }
  throw new Error('no such pass')
}

const drawnData = fc.record({
  lengths: fc.array(fc.oneof(fc.constant(0), fc.nat(9)), { minLength: 1, maxLength: 9 }),
  n: fc.integer({ min: 1, max: 9 }),
  d: fc.integer({ min: 1, max: 9 }),
  seed: fc.nat(100),
})

test('empty rows do not change results, and cause no races', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...SCHEDULES),
      fc.tuple(
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 1, max: 3 }),
        fc.integer({ min: 1, max: 4 }),
      ),
      drawnData,
      async (name, args, { lengths, n, d, seed }) => {
        expect(versionsOf('rows', name, args)).toHaveLength(args[2] > 1 ? 1 : 0)
        const { compilation: c } = scheduled('rows', name, args)
        await agreeOnAll(c, inputsOf(lengths, n, d, seed))
      },
    ),
    { numRuns: runs(9) },
  )
})

test('empty rows among others on WebGPU', async () => {
  const device = await devices.webgpu()
  for (const name of SCHEDULES) {
    const compiled = await scheduled('rows', name, [4, 2, 3]).build(device)
    for (const { lengths, n, d, seed } of [
      ...fc.sample(drawnData, 2),
      { lengths: [0, 0], n: 3, d: 5, seed: 1 },
    ]) {
      const prepared = await compiled.bind(...flatInputs(inputsOf(lengths, n, d, seed)))
      expect((await prepared.verify()).problems, `${name} ${lengths} ${n} ${d} ${seed}`).toEqual([])
      prepared.free()
    }
  }
  await device.dispose()
})

test('a block without iterations runs the code around the loop, with its tile at the same address', () => {
  const [version] = versionsOf('rows', 'through', [4, 2, 3])
  const loops = (body: If['then']) => loopsOf(body).map((l) => l.name)
  expect(loops(version!.then)).toContain('jo')
  expect(loops(version!.else).filter((l) => l.startsWith('j'))).toEqual([])
  const allocated: string[] = []
  walkStmts([version!], (s) => {
    if (s.kind === 'alloc' && s.buffer.scope === 'shared') allocated.push(s.buffer.name)
  })
  expect(allocated.toSorted()).toEqual(['As', 'Bs'])
})

test('there are no versions if trip counts are uniform, or without a pipeline', () => {
  expect(versionsOf('product', 'plain', [4, 2, 3])).toEqual([])
  expect(versionsOf('rows', 'blocks', [4, 2])).toEqual([])
})

test('empty tiles start and await no copies', async () => {
  const kernel = (await load('kernels/tile-wise.spt')).kernel('pruned_linear_f16')
  const text = kernel.schedule('wgmma').emit('cuda')[0]!.text
  const [whole, empty, ...more] = text.split('\n  } else {\n')
  expect(more).toEqual([])
  for (const what of ['mbarrier', 'cp.async', 'wgmma.', 'for (int go']) {
    expect(whole).toContain(what)
    expect(empty).not.toContain(what)
  }
  for (const part of [whole, empty]) expect(part!.match(/stmatrix/g)).toHaveLength(8)
  // What both read begins before either is chosen.
  expect(whole!.slice(0, whole!.search(/\n {2}if \(test\w*\) \{/))).toContain('= b[output[')
  expect(empty).not.toContain('b[output[')
})
