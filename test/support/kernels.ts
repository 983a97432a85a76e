/**
 * One suite for every kernel file: all schedules on all devices against the reference, on the cases a test gives,
 * and their CUDA text through nvcc where there is one.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { RunInputs } from '../../src/api/compiled.ts'
import { SptError } from '../../src/ast/diagnostic.ts'
import { Random } from '../../src/bind/random.ts'
import { coords, type Device, devices, load, type SptProgram } from '../../src/node.ts'
import { sample } from './cases.ts'
import { wgslErrors } from './wgsl-valid.ts'

export interface KernelCase {
  readonly name: string
  readonly inputs: RunInputs
  /** Values are integers, and so are all results: they must be equal, not close. */
  readonly exact?: boolean
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
  /** Cases of one of its kernels, under one of its schedules: some formats hold only some matrices. */
  readonly cases: (kernel: string, schedule: string | null) => readonly KernelCase[]
  /** Schedules with instructions that the devices of these tests do not have: they are compiled, not run. */
  readonly onlyCuda?: readonly string[]
  /** The same for instructions that have WGSL alone. */
  readonly onlyWgsl?: readonly string[]
  /** Schedules with other arguments than their own, whose CUDA texts are compiled as well. */
  readonly alsoWith?: readonly (readonly [kernel: string, schedule: string, ...args: number[]])[]
}

/** Milliseconds: a file may have dozens of schedules, and its device be a processor that others use as well. */
const MINUTES = 300_000

/** Tests of one file. Every kernel needs schedules for the CPU and for GPUs. */
export function kernelSuite({ file, cases, onlyCuda = [], onlyWgsl = [], alsoWith = [] }: KernelSuite): void {
  describe(file, () => {
    let program: SptProgram
    const present: Device[] = []
    beforeAll(async () => {
      program = await load(file)
      present.push(await devices.cpu(), await devices.webgpu())
    })
    afterAll(async () => {
      for (const d of present) await d.dispose()
    })

    test('every kernel has a CPU and a GPU schedule', () => {
      for (const name of program.kernels)
        expect(program.kernel(name).schedules, name).toEqual(expect.arrayContaining(['cpu', 'gpu']))
    })

    for (const device of [0, 1])
      test(
        `agrees with the reference on ${['cpu', 'webgpu'][device]}`,
        async () => {
          for (const name of program.kernels) {
            const { schedules, choices } = program.kernel(name)
            const all = [null, ...schedules, ...choices]
            // SwiftShader takes long to compile a text.
            for (const [turn, schedule] of (device === 1 ? sample(all, 3) : all).entries()) {
              if (schedule !== null && [...onlyCuda, ...onlyWgsl].includes(schedule)) continue
              const list = cases(name, schedule)
              expect(list.length, `cases of ${name}`).toBeGreaterThan(0)
              const kernel = program.kernel(name)
              const compiled = await (schedule === null
                ? kernel.compileAsIs(present[device]!)
                : kernel.schedule(schedule).compile(present[device]!))
              let ran = 0
              for (const [k, c] of list.entries()) {
                // Schedules take turns with the data.
                if (ran > 0 && (k + turn) % 2 > 0) continue
                const what = `${name}.${schedule ?? '(none)'}: ${c.name}`
                const prepared = await compiled.prepare(c.inputs).catch(meetsRequirements)
                if (!prepared) continue
                ran++
                const v = await prepared.verify()
                prepared.free()
                expect(v.problems, what).toEqual([])
                if (c.exact) expect(v.maxAbsoluteError, what).toBe(0)
              }
              expect(ran, `sizes that ${name}.${schedule ?? '(none)'} is for`).toBeGreaterThan(0)
              compiled.release()
            }
          }
        },
        MINUTES,
      )

    test('its CUDA text compiles', ({ skip }) => {
      const found = spawnSync('nvcc', ['--version'])
      if (found.status !== 0) skip('nvcc is not installed: the CUDA text was printed, not compiled')
      const texts = program.kernels.flatMap((name) =>
        program
          .kernel(name)
          .schedules.filter((s) => !onlyWgsl.includes(s))
          .map((s) => program.kernel(name).schedule(s).emit('cuda')),
      )
      const others = alsoWith.map(([name, s, ...args]) =>
        program
          .kernel(name)
          .schedule(s, ...args)
          .emit('cuda'),
      )
      expect(nvcc(sample([...texts, ...others].flat(), 3).map((t) => t.text))).toBe('')
    })

    if (onlyWgsl.length > 0)
      test('WGSL that no device here runs is valid', async () => {
        for (const name of program.kernels)
          for (const s of program.kernel(name).schedules.filter((x) => onlyWgsl.includes(x)))
            for (const { text } of program.kernel(name).schedule(s).emit('wgsl'))
              expect([name, s, await wgslErrors(text)]).toEqual([name, s, []])
      })
  })
}

/** Nothing where the schedule is for other sizes. */
function meetsRequirements(e: unknown): undefined {
  if (e instanceof SptError && e.diagnostics[0]?.code === 'run/requirement') return undefined
  throw e
}

/** Compiles texts in one go, each in a name space of its own; returns what the compiler said where it refused. */
export function nvcc(texts: readonly string[]): string {
  const includes = new Set<string>()
  const parts = texts.map((text, k) => {
    const lines = text.split('\n')
    for (const l of lines) if (l.startsWith('#include')) includes.add(l)
    const rest = lines.filter((l) => !l.startsWith('#include')).join('\n')
    return `namespace n${k} {\n${rest.replaceAll('extern "C" ', '')}}\n`
  })
  const folder = mkdtempSync(join(tmpdir(), 'spt-nvcc-'))
  try {
    const source = join(folder, 'all.cu')
    writeFileSync(source, `${[...includes].join('\n')}\n${parts.join('\n')}`)
    const r = spawnSync(
      'nvcc',
      ['-gencode=arch=compute_90a,code=sm_90a', '-cubin', '-o', '/dev/null', source],
      { encoding: 'utf8' },
    )
    return r.status === 0 ? '' : `${r.stdout}${r.stderr}` || `nvcc ended with ${r.status}`
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
