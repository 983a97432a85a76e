/**
 * One suite for every kernel file: all schedules on all devices against the reference, on the cases a test gives,
 * and their CUDA text through nvcc where there is one.
 */

import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { RunInputs } from '../../src/api/inputs/bound-inputs.ts'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { groupBy } from '../../src/ir/memoize.ts'
import { toF16 } from '../../src/ir/values/half.ts'
import { coords, type Device, dense, devices, load, type SptProgram } from '../../src/node.ts'
import { Random } from '../../src/run/bind/sources/random-tensors.ts'
import { LONG, SEED, sample } from './cases.ts'
import { compileTogether, noNvcc } from './nvcc.ts'
import { wgslErrors } from './wgsl-valid.ts'

export interface KernelCase {
  readonly name: string
  readonly inputs: RunInputs
  /** Values are integers, and so are all results: they must be equal, not close. */
  readonly exact?: boolean
  /** Many elements: one schedule has them, another in every run. */
  readonly large?: boolean
}

/** A sparse matrix by coordinates: rows and columns of its elements. */
export interface Pattern {
  readonly name: string
  readonly m: number
  readonly n: number
  readonly rows: Int32Array
  readonly cols: Int32Array
}

/** Elements where `keep` says so. */
function patternOf(name: string, m: number, n: number, keep: (i: number, j: number) => boolean): Pattern {
  const rows: number[] = []
  const cols: number[] = []
  for (let i = 0; i < m; i++)
    for (let j = 0; j < n; j++)
      if (keep(i, j)) {
        rows.push(i)
        cols.push(j)
      }
  return { name, m, n, rows: Int32Array.from(rows), cols: Int32Array.from(cols) }
}

/** The shapes that break things: without elements, rows or columns; one row; empty and full rows; odd sizes. */
export function patterns(seed = 1): Pattern[] {
  const random = new Random(seed)
  const chance = (p: number) => (): boolean => random.next() < p
  const sparse = chance(0.2)
  return [
    patternOf('without elements', 5, 7, () => false),
    patternOf('0 × 6', 0, 6, () => false),
    patternOf('6 × 0', 6, 0, () => false),
    patternOf('one row', 1, 70, chance(0.5)),
    patternOf('one column', 37, 1, chance(0.5)),
    patternOf('empty rows', 41, 23, (i) => i % 3 === 1 && sparse()),
    patternOf('one dense row', 19, 150, (i) => i === 11 || random.next() < 0.03),
    patternOf('wide', 13, 90, sparse),
    patternOf('tall', 131, 10, sparse),
    patternOf('whole tiles', 32, 32, sparse),
    patternOf('rows of one length', 30, 24, (i, j) => (i + j) % 6 === 0),
    patternOf('one full row, the others empty', 40, 70, (i) => i === 33),
  ]
}

/** A dense tensor of half floats. */
export const halves = (shape: readonly number[], values: Float32Array) =>
  dense(shape, Uint16Array.from(values, toF16), 'f16')

/** Whole numbers from -3 to 3, as floats; never 0, so that every element counts. */
export function integers(length: number, seed: number): Float32Array {
  const random = new Random(seed)
  return Float32Array.from({ length }, () => (random.below(3) + 1) * (random.next() < 0.5 ? -1 : 1))
}

/** Normal floats. */
export function normals(length: number, seed: number): Float32Array {
  const random = new Random(seed)
  return Float32Array.from({ length }, () => random.normal())
}

/** A pattern with values as a tensor; without them, structure alone. */
export const matrix = (p: Pattern, values: Float32Array | null) =>
  coords([p.m, p.n], [p.rows, p.cols], values)

export interface KernelSuite {
  /** Path of the `.spt` file. */
  readonly file: string
  /** Kernels of the file; by default all, those of imported files included. */
  readonly kernels?: readonly string[]
  /** Cases of one of its kernels, under one of its schedules: some formats hold only some matrices. */
  readonly cases: (kernel: string, schedule: string | null) => readonly KernelCase[]
  /** Schedules and dispatches that another test runs, for instance with smaller tiles. */
  readonly ranElsewhere?: readonly string[]
  /** Schedules with other arguments than their own, whose CUDA texts are compiled as well. */
  readonly alsoWith?: readonly (readonly [kernel: string, schedule: string, ...args: number[]])[]
}

const TEXTS = readFileSync(new URL('emitted-texts.txt', import.meta.url), 'utf8').split('\n')

/** Targets that reject each `kernel.schedule`, for instance an instruction, by the table that `npm run texts` checks. */
function targetsWithout(file: string): ReadonlyMap<string, readonly string[]> {
  const rows = TEXTS.map((row) => row.split(' ')).filter(
    ([f, , , result]) => `kernels/${f}` === file && result === 'rejected',
  )
  const pairs = groupBy(rows, ([, pair]) => pair!)
  return new Map(Array.from(pairs, ([pair, of]) => [pair, of.map(([, , target]) => target!)]))
}

/** Milliseconds: a file may have dozens of schedules, and its device be a processor that others use as well. */
const MINUTES = 300_000

/** Of the suites of a test file, for one start of the compiler: that takes longer than a text. */
const cudaTexts: string[] = []

function compileGathered(): void {
  const texts = cudaTexts.splice(0)
  if (texts.length > 0) expect(compileTogether(texts)).toBe('')
}

/** Tests of one file. Every kernel needs schedules for the CPU and for GPUs. */
export function kernelSuite(suite: KernelSuite): void {
  const { file, cases, ranElsewhere = [], alsoWith = [] } = suite
  const without = targetsWithout(file)
  // At the end of the file: the first of these hooks finds the texts of all suites.
  afterAll(compileGathered, MINUTES)
  describe(file, () => {
    let program: SptProgram
    let kernels: readonly string[]
    const present: Device[] = []
    beforeAll(async () => {
      program = await load(file)
      kernels = suite.kernels ?? program.kernels
      present.push(await devices.cpu(), await devices.webgpu())
    })
    afterAll(async () => {
      for (const d of present) await d.dispose()
    })

    test('every kernel has a CPU and a GPU schedule', () => {
      for (const name of kernels)
        expect(program.kernel(name).schedules, name).toEqual(expect.arrayContaining(['cpu', 'gpu']))
    })

    // The compiler of software devices takes seconds: of few kernels more schedules each.
    const most = (device: number): number => (device === 0 ? 6 : Math.max(1, 4 - kernels.length))
    /** Every kernel runs on cpu, half of them on webgpu, in turn: other ones for each seed. */
    const inTurn = (device: number): readonly string[] => {
      const turned = kernels.map((_, k, all) => all[(k + SEED) % all.length]!)
      return device === 0 || LONG ? turned : turned.slice(0, Math.ceil(turned.length / 2))
    }
    // SwiftShader takes seconds to compile a schedule for one thread, which is not meant for a GPU.
    const oneThread = LONG || SEED % 4 === 0
    for (const device of [0, 1])
      test(
        `agrees with the reference on ${['cpu', 'webgpu'][device]}`,
        async () => {
          // SwiftShader takes seconds to compile the longest texts: one of those for every fourth seed.
          let long = SEED % 4 === 0 ? 0 : 1
          for (const name of inTurn(device)) {
            const { schedules, dispatches } = program.kernel(name)
            // Only schedules that run here are drawn: otherwise a suite could pass without a comparison.
            const all = [null, ...schedules, ...dispatches].filter(
              (s) =>
                s === null ||
                (!ranElsewhere.includes(s) &&
                  !without.get(`${name}.${s}`)?.includes('js') &&
                  (s !== 'cpu' || device === 0 || oneThread)),
            )
            for (const [turn, schedule] of sample(all, most(device)).entries()) {
              const list = cases(name, schedule)
              expect(list.length, `cases of ${name}`).toBeGreaterThan(0)
              const kernel = program.kernel(name)
              const scheduled = schedule === null ? kernel : kernel.schedule(schedule)
              if (device === 1 && !LONG && schedule !== null && !kernel.dispatches.includes(schedule)) {
                const characters = scheduled.emit('wgsl').reduce((n, t) => n + t.text.length, 0)
                if (characters > 30_000 && long++ > 0) continue
              }
              const compiled = await (schedule === null
                ? kernel.build(present[device]!, { auto: false })
                : scheduled.build(present[device]!))
              let ran = 0
              for (const [k, c] of list.entries()) {
                if (c.large && !LONG && turn !== SEED % all.length) continue
                // Schedules take turns with the data: other ones in every run.
                if (ran > 0 && !LONG && (k + turn + SEED) % 8 > 0) continue
                const what = `${name}.${schedule ?? '(none)'}: ${c.name}`
                const prepared = await compiled.bind(...flatInputs(c.inputs)).catch(meetsRequirements)
                if (!prepared) continue
                ran++
                const v = await prepared.verify()
                prepared.free()
                expect(v.problems, what).toEqual([])
                expect(v.undecided, what).toBe(0)
                if (c.exact) expect(v.maxAbsoluteError, what).toBe(0)
              }
              expect(ran, `sizes that ${name}.${schedule ?? '(none)'} is for`).toBeGreaterThan(0)
              compiled.release()
            }
          }
        },
        MINUTES,
      )

    // `npm run texts` compiles those with default arguments.
    if (alsoWith.length > 0)
      test('CUDA code with other arguments is printed, and compiles', ({ skip }) => {
        if (noNvcc) skip('nvcc is not installed: the CUDA text was printed, not compiled')
        const texts = sample(alsoWith, 3).flatMap(([name, s, ...args]) =>
          program
            .kernel(name)
            .schedule(s, ...args)
            .emit('cuda'),
        )
        cudaTexts.push(...texts.map((t) => t.text))
      })

    const onlyWgsl = [...without].filter(([, targets]) => !targets.includes('wgsl')).map(([pair]) => pair)
    if (onlyWgsl.length > 0)
      test('WGSL of instructions that no local device has is valid', async () => {
        for (const pair of onlyWgsl) {
          const [name, schedule] = pair.split('.') as [string, string]
          for (const { text } of program.kernel(name).schedule(schedule).emit('wgsl'))
            expect([pair, await wgslErrors(text)]).toEqual([pair, []])
        }
      })
  })
}

/** Nothing where the schedule is for other sizes. */
function meetsRequirements(e: unknown): undefined {
  if (e instanceof SptError && e.diagnostics[0]?.code === 'run/requirement') return undefined
  throw e
}
