/** Products whose tiles arrive by counted copies: their schedules, inputs and results, for property tests. */
import { expect } from 'vitest'
import { coords, dense } from '../../src/api/inputs/tensors.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { verifyPass } from '../../src/api/stages/stage-verifier.ts'
import { interpretPlan } from '../../src/interpret/stage3.ts'
import type { Kernel } from '../../src/node.ts'
import { bindInputs, type Inputs } from '../../src/run/bind/index.ts'
import { DECLARED, Device } from '../support/asynchronous.ts'

/** `single`: what `bulk` is, as another kind. */
export const KINDS = `${DECLARED}${DECLARED.slice(
  DECLARED.indexOf('instr bulk'),
  DECLARED.indexOf('instr later'),
)
  .replace('instr bulk', 'instr single')
  .replace('$bytes);', '$bytes); /* single */')}`

/** A product and what comes after each complete sum. */
export const LAYER = `
kernel layer(m: size, n: size, k: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis p = dense_fixed(k)
  buffer A: f32[i, p] in
  buffer B: f32[p, j] in
  buffer bias: f32[j] in
  buffer T: f32[i, j] local
  buffer C: f32[i, j] out
  iterate sum [i, j, p] as SSR { T[i, j] += A[i, p] * B[p, j] }
  iterate after [i, j] as SS { C[i, j] = max(2 * T[i, j] + bias[j], 0) }
}`

const KERNELS = `
kernel product(m: size, n: size, k: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis p = dense_fixed(k)
  buffer A: f32[i, p] in
  buffer B: f32[p, j] in
  buffer C: f32[i, j] out
  iterate sum [i, j, p] as SSR { C[i, j] += A[i, p] * B[p, j] }
}
// Dense blocks of 4 × 4 in sparse rows: as many rounds as a row has blocks.
kernel blocks(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis bi = dense_fixed(4)
  axis bk = dense_fixed(4)
  axis f = dense_fixed(d)
  buffer A: f32[i, j, bi, bk] in
  buffer B: f32[jd, bk, f] in
  buffer C: f32[i, bi, f] out
  iterate sum [i, j, bi, bk, f] as SRSRS { C[i, bi, f] += A[i, j, bi, bk] * B[j, bk, f] }
}`

/** How tiles of A and B arrive; boxes by `bulk` or by `single`. */
export const COPIES = ['bulk', 'single', 'later', 'plain'] as const
type Copy = (typeof COPIES)[number]
const isBox = (c: Copy): boolean => c === 'bulk' || c === 'single'
/** Whether any of the copies count their bytes. */
export const counts = ({ a, b }: Pick<Steps, 'a' | 'b'>): boolean => isBox(a) || isBox(b)

export interface Steps {
  readonly kernel: 'product' | 'blocks'
  readonly a: Copy
  readonly b: Copy
  /** Computing is ordered and goes on by itself. */
  readonly ordered: boolean
  /** A block of threads has several tiles, one after the other. */
  readonly again: boolean
  /** 0: no pipeline. */
  readonly stages: number
  /** Neighbouring tiles of columns, which need the same of A. */
  readonly cluster?: number
}

/** Tiles of 4 × 8 of C for a block of 2 × 4 threads, 4 deep in a round. */
export function stepsOf({ kernel, a, b, ordered, again, stages, cluster = 1 }: Steps): string {
  const product = kernel === 'product'
  const [row, k, inner] = product ? ['io', 'po', 'pr'] : ['i', 'j', 'bk']
  const own = again ? `${row}s` : 'wi'
  const [, column] = ordered ? ['', 'jt'] : ['jr', 'jt']
  return `
    require ${product ? 'm % 4 == 0' : `d % ${8 * cluster} == 0`}
    ${product ? `require n % ${8 * cluster} == 0\nrequire k % 4 == 0` : ''}
    ${product ? 'split i by 4 -> (io, ii)' : ''}
    split ${product ? 'ii' : 'bi'} by 2 -> (wi, ir)
    split ${product ? 'j' : 'f'} by 8 -> (jo, ji)
    split ji by 4 -> (jt, jr)
    ${product ? 'split p by 4 -> (po, pr)' : ''}
    ${again ? `split ${row} by 3 -> (rb, ${row}s)` : ''}
    reorder (${again ? 'rb' : row}, jo, wi, ${ordered ? '' : 'jr, '}${again ? `${row}s, ` : ''}${k}, jt, ir, ${ordered ? 'jr, ' : ''}${inner})
    bind ${again ? 'rb' : row} to block.y, jo to block.x, wi to thread.y${ordered ? '' : ', jr to thread.x'}
    cache_write C at ${ordered || again ? own : 'jr'} in ${ordered ? 'acc' : 'register'}
    cache_read A at ${k} in tile -> As
    cache_read B at ${k} in tile -> Bs
    ${isBox(a) ? `split As.wi by 2 -> (ac, ar)\ntensorize ar with ${a}` : ''}
    ${a === 'later' ? `tensorize As.${inner} with later` : ''}
    ${b === 'plain' ? '' : `split Bs.${column} by 4 -> (bc, bv)`}
    ${isBox(b) ? `split Bs.${inner} by 2 -> (br, bh)\nreorder (br, bc, bh, bv)\ntensorize bh with ${b}` : ''}
    ${b === 'later' ? 'tensorize bv with later' : ''}
    ${ordered ? 'tensorize sum.ir with multiply' : ''}
    ${cluster > 1 ? `cluster jo by ${cluster}` : ''}
    ${stages > 0 ? `pipeline ${k} by ${stages}` : ''}`
}

/** A is there for two rounds, B for one; both are copied ahead. */
export const nestedSteps = ({ a, b, ordered, again, stages }: Nested): string => `
    require m % 4 == 0
    require n % 8 == 0
    require k % 8 == 0
    split i by 4 -> (io, ii)
    split ii by 2 -> (wi, ir)
    split j by 8 -> (jo, ji)
    split ji by 4 -> (jt, jr)
    split p by 8 -> (po, ph)
    split ph by 4 -> (pm, pr)
    ${again ? 'split io by 3 -> (rb, ios)' : ''}
    reorder (${again ? 'rb' : 'io'}, jo, wi, ${ordered ? '' : 'jr, '}${again ? 'ios, ' : ''}po, pm, jt, ir, ${ordered ? 'jr, ' : ''}pr)
    bind ${again ? 'rb' : 'io'} to block.y, jo to block.x, wi to thread.y${ordered ? '' : ', jr to thread.x'}
    cache_write C at ${again ? 'ios' : ordered ? 'wi' : 'jr'} in ${ordered ? 'acc' : 'register'}
    cache_read A at po in tile -> As
    cache_read B at pm in tile -> Bs
    split As.pm by 4 -> (aq, av)
    ${isBox(a) ? `split As.wi by 2 -> (ac, ar)\nreorder (ac, aq, ar, av)\ntensorize ar with ${a}` : ''}
    ${a === 'later' ? 'tensorize av with later' : ''}
    split Bs.jt by 4 -> (bc, bv)
    ${isBox(b) ? `split Bs.pr by 2 -> (br, bh)\nreorder (br, bc, bh, bv)\ntensorize bh with ${b}` : ''}
    ${b === 'later' ? 'tensorize bv with later' : ''}
    ${ordered ? 'tensorize sum.ir with multiply' : ''}
    ${stages > 0 ? `pipeline po by ${stages}` : ''}
    pipeline pm by 2`

/** `grid` blocks of threads take one tile of C after the other. */
export const dealtSteps = ({ a, b, ordered, stages, grid }: Dealt): string => `
    require m % 4 == 0
    require n % 8 == 0
    require k % 4 == 0
    split i by 4 -> (io, ii)
    split ii by 2 -> (wi, ir)
    split j by 8 -> (jo, ji)
    split ji by 4 -> (jt, jr)
    split p by 4 -> (po, pr)
    reorder (io, jo, wi, ${ordered ? '' : 'jr, '}po, jt, ir, ${ordered ? 'jr, ' : ''}pr)
    fuse (io, jo) -> tile
    split tile by ${grid} -> (round, block)
    reorder (block, round)
    bind block to block.x, wi to thread.y${ordered ? '' : ', jr to thread.x'}
    cache_write C at ${ordered ? 'wi' : 'jr'} in ${ordered ? 'acc' : 'register'}
    cache_read A at po in tile -> As
    cache_read B at po in tile -> Bs
    ${isBox(a) ? 'split As.wi by 2 -> (ac, ar)\ntensorize ar with bulk' : ''}
    split Bs.jt by 4 -> (bc, bv)
    ${isBox(b) ? 'split Bs.pr by 2 -> (br, bh)\nreorder (br, bc, bh, bv)\ntensorize bh with bulk' : ''}
    ${ordered ? 'tensorize sum.ir with multiply' : ''}
    cache_write C at round in shared -> Cs
    ${stages > 0 ? `pipeline po by ${stages}` : ''}`

/** Blocks of threads take tiles one after the other, and copies go on from tile to tile. */
export function continuedSteps(
  { kernel, a, b, ordered, stages, grid, again, through, boxes }: Continued,
  continued = true,
): string {
  const product = kernel === 'product'
  const [row, k, inner] = product ? ['io', 'po', 'pr'] : ['i', 'j', 'bk']
  const column = 'jt'
  return `
    ${product ? 'require m % 4 == 0\nrequire n % 8 == 0\nrequire k % 4 == 0' : 'require d % 8 == 0'}
    ${product ? 'split i by 4 -> (io, ii)' : ''}
    split ${product ? 'ii' : 'bi'} by 2 -> (wi, ir)
    split ${product ? 'j' : 'f'} by 8 -> (jo, ji)
    split ji by 4 -> (jt, jr)
    ${product ? 'split p by 4 -> (po, pr)' : ''}
    reorder (${row}, jo, wi, ${ordered ? '' : 'jr, '}${k}, jt, ir, ${ordered ? 'jr, ' : ''}${inner})
    fuse (${row}, jo) -> tile
    split tile by ${grid} -> (round, block)
    reorder (block, round)
    ${again ? 'split round by 2 -> (turn, round)' : ''}
    bind block to block.x, wi to thread.y${ordered ? '' : ', jr to thread.x'}
    cache_write C at ${ordered ? 'wi' : 'jr'} in ${ordered ? 'acc' : 'register'}
    cache_read A at ${k} in tile -> As
    cache_read B at ${k} in tile -> Bs
    ${isBox(a) ? `split As.wi by 2 -> (ac, ar)\ntensorize ar with ${a}` : ''}
    ${a === 'later' ? `tensorize As.${inner} with later` : ''}
    ${b === 'plain' ? '' : `split Bs.${column} by 4 -> (bc, bv)`}
    ${isBox(b) ? `split Bs.${inner} by 2 -> (br, bh)\nreorder (br, bc, bh, bv)\ntensorize bh with ${b}` : ''}
    ${b === 'later' ? 'tensorize bv with later' : ''}
    ${ordered ? 'tensorize sum.ir with multiply' : ''}
    ${through ? `cache_write C at round in ${boxes && ordered ? 'tile' : 'shared'} -> Cs` : ''}
    ${through && boxes && ordered ? 'tensorize Cs.ir with leave' : ''}
    pipeline ${k} by ${stages}${continued ? ' over round' : ''}`
}

/** `again`: in turns, each of which begins anew; `through`: results leave through shared memory, `boxes`: by themselves, where computing is ordered. */
export type Continued = Steps & { readonly grid: number; readonly through: boolean; readonly boxes: boolean }

export type Dealt = Omit<Nested, 'again'> & { readonly grid: number }

export type Nested = Omit<Steps, 'kernel'>

export const scheduledBy = (kernel: string, steps: string, declared = KINDS): Kernel =>
  parseProgram(`${declared}${KERNELS}\nschedule ${kernel}.tested {${steps}\n}`)
    .kernel(kernel)
    .schedule('tested')
export const scheduled = (s: Steps): Kernel => scheduledBy(s.kernel, stepsOf(s))

const whole = (length: number, seed: number): Float32Array =>
  Float32Array.from({ length }, (_, e) => ((e * 31 + seed) % 9) - 4)

/** Rows of blocks have up to `rounds` of them, and so does a product. */
export function inputsOf(kernel: Steps['kernel'], rows: number, rounds: number, seed: number, d = 16) {
  const m = rows
  const of = (i: number): number =>
    kernel === 'product' ? rounds : rounds === 0 ? 0 : (i * 7 + seed) % (rounds + 1)
  const A = Array.from({ length: m }, (_, i) => whole(of(i) * 16, seed + i))
  const n = Math.max(1, rounds)
  const B = whole(n * 4 * d, seed + 5)
  // Columns of a row go down from the last, so that they are not simply counted.
  const column = (i: number, e: number): number => n - of(i) + e
  const C = new Array<number>(m * 4 * d).fill(0)
  for (let i = 0; i < m; i++)
    for (let e = 0; e < of(i); e++)
      for (let x = 0; x < 4; x++)
        for (let k = 0; k < 4; k++)
          for (let f = 0; f < d; f++)
            C[(i * 4 + x) * d + f]! += A[i]![(e * 4 + x) * 4 + k]! * B[(column(i, e) * 4 + k) * d + f]!
  if (kernel === 'blocks') {
    const rowsOf = A.flatMap((_, i) => Array<number>(of(i)).fill(i))
    const columns = A.flatMap((_, i) => Array.from({ length: of(i) }, (_x, e) => column(i, e)))
    const inputs: Inputs = {
      tensors: {
        A: coords(
          [m, n, 4, 4],
          blockCoords(rowsOf, columns),
          A.flatMap((x) => [...x]),
        ),
        B: dense([n, 4, d], B),
      },
      params: { m, n, d },
    }
    return { inputs, C, some: rowsOf.length > 0 }
  }
  const k = rounds * 4
  const whole4 = new Float32Array(m * 4 * k)
  for (let i = 0; i < m * 4; i++)
    for (let p = 0; p < k; p++)
      whole4[i * k + p] = A[Math.floor(i / 4)]![(Math.floor(p / 4) * 4 + (i % 4)) * 4 + (p % 4)]!
  const inputs: Inputs = {
    tensors: { A: dense([m * 4, k], whole4), B: dense([k, d], B.slice(0, k * d)) },
    params: { m: m * 4, n: d, k },
  }
  return { inputs, C, some: rounds > 0 }
}

function blockCoords(rows: readonly number[], columns: readonly number[]): number[][] {
  const each = rows.flatMap((r, e) =>
    Array.from({ length: 16 }, (_, x) => [r, columns[e]!, Math.floor(x / 4), x % 4]),
  )
  return [0, 1, 2, 3].map((d) => each.map((c) => c[d]!))
}

/** How many boxes a device that takes its time copies, which computes C. */
export function copiesOf(k: Kernel, inputs: Inputs, C: readonly number[], seed: number): number {
  const device = new Device(seed)
  expectOn(device, k, inputs, C)
  return device.copies
}

/** The device computes C. */
export function expectOn(device: Device, k: Kernel, inputs: Inputs, C: readonly number[]): void {
  const bound = bindInputs(k.compilation.kernel, inputs)
  const plan = k.compilation.observe(verifyPass)
  const memory = new Map<string, number[]>([['C', new Array<number>(C.length).fill(Number.NaN)]])
  for (const [name, values] of bound.arrays) if (name !== 'C') memory.set(name, Array.from(values, Number))
  interpretPlan(plan, memory, bound.params, device)
  device.end()
  expect(memory.get('C')!.map((x) => x + 0)).toEqual(C.map((x) => x + 0))
}
