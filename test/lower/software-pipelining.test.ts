/** Copies of a block in shared memory, and loops that make them ahead: nothing changes, whatever the sizes. */

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { coords, dense } from '../../src/api/inputs/tensors.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { Names } from '../../src/ir/expressions/bound-names.ts'
import { int, lt } from '../../src/ir/expressions/expr.ts'
import { readsOf, writesOf } from '../../src/ir/statements/accesses.ts'
import { loopsOf } from '../../src/ir/statements/definitions.ts'
import type { Stmt } from '../../src/ir/statements/loops.ts'
import { when } from '../../src/ir/statements/statement-builders.ts'
import { splitCopy } from '../../src/lower/pipelining/copy-in-flight.ts'
import { devices } from '../../src/node.ts'
import type { Inputs } from '../../src/run/bind/index.ts'
import type { Tensor } from '../../src/storage/tensor.ts'
import { agreeOnAll } from '../properties/agree.ts'
import { runs, sample } from '../support/cases.ts'
import { at, expr, loop, store } from '../support/stage2-builders.ts'
import { LAYER } from './tma-products.ts'

const TEXT = `
kernel product(m: size, n: size, k: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis p = dense_fixed(k)
  buffer A: f32[i, p] in
  buffer B: f32[p, j] in
  buffer C: f32[i, j] out
  iterate sum [i, j, p] as SSR { C[i, j] += A[i, p] * B[p, j] }
}
// Registers of 2 × 2, digits of one index on both sides of the threads.
schedule product.tiles(rows, cols, depth) {
  split i by 4 * rows -> (io, ii)
  split ii by 2 * rows -> (ih, iq)
  split iq by 2 -> (it, ir)
  split j by 2 * cols -> (jo, ji)
  split ji by 2 -> (jt, jr)
  split p by depth -> (po, pi)
  reorder (io, jo, it, jt, po, pi, ih, ir, jr)
  bind io to block.x, jo to block.y, it to thread.y, jt to thread.x
  cache_write C at jt in register
}
schedule product.plain(rows, cols, depth, stages) {
  use tiles(rows, cols, depth)
  cache_read A at po in shared -> As
  cache_read B at po in shared -> Bs
  pipeline po by stages
}
// Results leave through shared memory, in other order than they were computed in.
schedule product.out(rows, cols, depth, stages) {
  use plain(rows, cols, depth, stages)
  cache_write C at jo in shared -> Cs
  reorder (Cs.ih, Cs.it, Cs.ir, Cs.jt, Cs.jr)
}
schedule product.padded(rows, cols, depth, stages) {
  use tiles(rows, cols, depth)
  cache_read A at po in shared transposed stride 4 * rows + 1 padded 0 -> As
  cache_read B at po in shared stride 2 * cols + 4 by 2 padded 0 -> Bs
  cache_read As at pi in register
  cache_read Bs at pi in register
  pipeline po by stages
  unroll jr
}
schedule product.even(rows, cols, depth, stages) {
  require n % 4 == 0
  require k % 2 == 0
  use tiles(rows, cols, depth)
  cache_read A at po in shared by 2 -> As
  cache_read B at po in shared by 2 padded 0 -> Bs
  pipeline po by stages
}
// No guard is left but that there is anything at all; B is copied in one round.
schedule product.exact(rows, cols, stages) {
  require m % 16 == 0
  require n % 12 == 0
  require k % 4 == 0
  use tiles(rows, cols, 4)
  cache_read A at po in shared transposed by 4 -> As
  cache_read B at po in shared by 2 -> Bs
  pipeline po by stages
}

// What comes after a complete sum, at the end of each tile.
${LAYER}
schedule layer.tiles(rows, cols, depth, stages) {
  split sum.i by 4 * rows -> (io, ii)
  split ii by 2 * rows -> (ih, iq)
  split iq by 2 -> (it, ir)
  split sum.j by 2 * cols -> (jo, ji)
  split ji by 2 -> (jt, jr)
  split p by depth -> (po, pi)
  reorder (io, jo, it, jt, po, pi, ih, ir, jr)
  bind io to block.x, jo to block.y, it to thread.y, jt to thread.x
  compute_at after at jt
  cache_write T at jt in register
  cache_read A at po in shared padded 0 -> As
  cache_read B at po in shared padded 0 -> Bs
  pipeline po by stages
}

kernel gather(m: size, n: size, d: size) {
  axis i  = dense_fixed(m)
  axis j  = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis f  = dense_fixed(d)
  buffer A: f32[i, j] in
  buffer B: f32[jd, f] in
  buffer C: f32[i, f] out
  iterate sum [i, j, f] as SRS { C[i, f] += A[i, j] * B[j, f] }
}
// A row for each block: its columns of B are gathered, \`depth\` at a time.
schedule gather.rows(cols, depth, stages) {
  split j by depth -> (jo, ji)
  split f by cols -> (fo, fi)
  reorder (i, fo, fi, jo, ji)
  bind i to block.x, fo to block.y, fi to thread.x
  cache_write C at fi in register
  cache_read A at jo in shared -> As
  cache_read B at jo in shared -> Bs
  pipeline jo by stages
}
schedule gather.padded(cols, depth, stages) {
  split j by depth -> (jo, ji)
  split f by cols -> (fo, fi)
  reorder (i, fo, fi, jo, ji)
  bind i to block.x, fo to block.y, fi to thread.x
  cache_write C at fi in register
  cache_read A at jo in shared padded 0 -> As
  cache_read B at jo in shared padded 0 -> Bs
  pipeline jo by stages
}
// One element at a time, several rows a block: each row has its own copies.
schedule gather.several(cols, depth, stages) {
  split i by depth -> (io, ii)
  split f by cols -> (fo, fi)
  reorder (io, ii, fo, fi, j)
  bind io to block.x, fi to thread.x
  cache_write C at fi in register
  cache_read B at j in shared -> Bs
  pipeline j by stages
}
`
const program = parseProgram(TEXT)

function inputsOf(kernel: string, m: number, n: number, k: number, seed: number): Inputs {
  const whole = (rows: number, cols: number): Tensor =>
    dense(
      [rows, cols],
      Float32Array.from({ length: rows * cols }, (_, e) => ((e * 31 + seed) % 9) - 4),
    )
  if (kernel === 'product') return { tensors: { A: whole(m, k), B: whole(k, n) }, params: { m, n, k } }
  if (kernel === 'layer')
    return {
      tensors: { A: whole(m, k), B: whole(k, n), bias: dense([n], whole(1, n).values!) },
      params: { m, n, k },
    }
  const cells = Array.from({ length: m * n }, (_, e) => e).filter(
    (e) => (e * 7919 + seed) % 5 < 3 && e % n !== seed % 4,
  )
  const A = coords(
    [m, n],
    [cells.map((e) => Math.floor(e / n)), cells.map((e) => e % n)],
    cells.map((e) => (e % 7) - 3),
  )
  return { tensors: { A, B: whole(n, k) }, params: { m, n, d: k } }
}

const CASES = [
  ['product', 'plain'],
  ['product', 'out'],
  ['product', 'padded'],
  ['product', 'even'],
  ['product', 'exact'],
  ['layer', 'tiles'],
  ['gather', 'rows'],
  ['gather', 'padded'],
  ['gather', 'several'],
] as const

type Three = readonly [number, number, number]

const argsOf = (kernel: string, name: string, [a, b, stages]: Three): readonly number[] => {
  if (kernel === 'gather') return [a + b, b, stages]
  return name === 'exact' ? [4, b, stages] : [a, b, name === 'even' ? 4 : a + b, stages]
}

/** Sizes that the schedule is for. */
const sizesOf = (name: string, [m, n, k]: Three): Three => {
  if (name === 'exact') return [16 * (m % 2), 12 * (1 + (n % 2)), 4 * (k % 4)]
  return name === 'even' ? [m, 4 * n, 2 * k] : [m, n, k]
}

const scheduled = (kernel: string, schedule: string, args: readonly number[]) =>
  program.kernel(kernel).schedule(schedule, ...args)

test('software-pipelined copies do not change results, and cause no races', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...CASES),
      fc.record({
        a: fc.integer({ min: 1, max: 2 }),
        b: fc.integer({ min: 1, max: 3 }),
        stages: fc.integer({ min: 2, max: 4 }),
      }),
      fc.record({ m: fc.nat(9), n: fc.integer({ min: 1, max: 9 }), k: fc.nat(11), seed: fc.nat(100) }),
      async ([kernel, name], { a, b, stages }, { m, n, k, seed }) => {
        const args = argsOf(kernel, name, [a, b, stages])
        const { compilation: c } = scheduled(kernel, name, args)
        await agreeOnAll(c, inputsOf(kernel, ...sizesOf(name, [m, n, k]), seed))
      },
    ),
    { numRuns: runs(5) },
  )
})

test('software-pipelined copies on WebGPU', async () => {
  const device = await devices.webgpu()
  // SwiftShader compiles slowly.
  for (const [kernel, name] of sample(CASES, 4))
    for (const [m, n, k] of [
      [5, 8, 10],
      [9, 4, 0],
    ] as const) {
      const args = argsOf(kernel, name, [2, 2, 3])
      const compiled = await scheduled(kernel, name, args).build(device)
      const prepared = await compiled.bind(...flatInputs(inputsOf(kernel, ...sizesOf(name, [m, n, k]), 3)))
      expect((await prepared.verify()).problems, `${kernel}.${name} ${m} ${n} ${k}`).toEqual([])
      prepared.free()
    }
  await device.dispose()
})

test('guards covered by padding are removed, and values of one iteration are in registers', () => {
  const c = scheduled('layer', 'tiles', [2, 2, 4, 2])
  const sum = c.show(2).split('\n')
  const at = sum.findIndex((l) => l.includes('T_register['))
  expect(sum.slice(at - 4, at).join()).not.toContain('where')
  expect(c.compilation.loops.buffers.map((b) => b.name)).not.toContain('T')
})

test('one barrier per iteration', () => {
  const text = scheduled('product', 'plain', [2, 2, 4, 2]).emit('cuda')[0]!.text
  const rounds = text.slice(text.indexOf('for (int po'))
  expect(rounds.match(/__syncthreads/g)).toHaveLength(1)
})

const COPIES = `
instr copy_later(D: f32[4] in shared aligned 16, S: f32[4] in global aligned 16) asynchronous {
  iterate copy [i] as S { D[i] = S[i] }
  cuda \`begin($D.at(0), $S.at(0));\`
  commit cuda \`commit();\`
  wait cuda \`wait($pending);\`
}
schedule product.asynchronous(stages) {
  require n % 4 == 0
  require k % 4 == 0
  use tiles(2, 2, 4)
  cache_read A at po in shared -> As
  cache_read B at po in shared -> Bs
  split As.pi by 4 -> (pq, pv)
  split Bs.jt by 4 -> (jq, jv)
  tensorize pv with copy_later
  tensorize jv with copy_later
  pipeline po by stages
}
`

test('asynchronous copies: one group per iteration, awaited before the barrier', () => {
  const text = parseProgram(`${TEXT}\n${COPIES}`)
    .kernel('product')
    .schedule('asynchronous', 3)
    .emit('cuda')[0]!.text
  const events = [...text.matchAll(/begin|commit|wait\(\d\)|__syncthreads|for \(int po/g)].map((m) => m[0])
  const group = ['begin', 'begin', 'commit']
  const ready = ['wait(1)', '__syncthreads']
  expect(events).toEqual([...group, ...group, ...ready, 'for (int po', ...group, ...ready])
})

test('gathered addresses are loaded an iteration before', () => {
  const text = scheduled('gather', 'rows', [4, 1, 2]).emit('cuda')[0]!.text
  const loop = text.slice(text.indexOf('for (int jo = 0'))
  expect(loop).toContain('B[j_indices_next *')
  expect(loop.indexOf('B[j_indices_next')).toBeLessThan(loop.indexOf('j_indices['))
})

test('a copy is held in registers while it is under way, whatever stands around its elements', () => {
  const element = (from: string) => store(at('tile', ['r', 'c']), at(from, ['r', 'c']))
  const copyOf = (body: Stmt) => loop('r', 2, [loop('c', 4, [body])])
  const either = when(lt(expr('n'), expr('m')), [element('A')], [element('B')])
  for (const copy of [
    copyOf(element('A')),
    copyOf(either),
    when(lt(expr('n'), expr('m')), [copyOf(either)]),
  ]) {
    const { start, end, inFlight } = splitCopy(copy, copy, new Names([]))
    expect(inFlight?.shape).toEqual([int(2), int(4)])
    expect(writesOf([start])).toEqual(new Set([inFlight!.name]))
    expect([...readsOf([end!])]).toEqual([inFlight!.name])
    // What is stored at the end is the same in both branches.
    expect(
      loopsOf([end!])
        .at(-1)!
        .body.map((s) => s.kind),
    ).toEqual(['store'])
  }
  expect(splitCopy(element('A'), element('A'), new Names([])).inFlight?.shape).toEqual([int(1)])
  const long = loop('r', 65, [element('A')])
  expect(splitCopy(long, long, new Names([])).inFlight).toBeUndefined()
})
