/** Kernels under schedules, named by strings: `FILE.spt:kernel.schedule(1, 2)`. */
import { existsSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { locate } from '../../src/io/package/package.ts'
import { type Kernel, load, type SptProgram } from '../../src/node.ts'
import { option, packageFile } from '../support.ts'

export interface Candidate {
  /** As given. */
  readonly text: string
  readonly file: string
  readonly kernel: string
  /** '' for the kernel as written. */
  readonly schedule: string
  readonly args: readonly number[]
}

/** What is timed of ours in one suite. */
export interface Field {
  /** What a user gets who chooses nothing; one of the candidates, or null. */
  readonly standard: string | null
  readonly candidates: readonly Candidate[]
}

/**
 * `FILE.spt:kernel.schedule(args)`; without a dot the name is a schedule of the kernel that is called like its file.
 * @throws Error where it is not of this form
 */
export function parseCandidate(text: string, values: Readonly<Record<string, number>> = {}): Candidate {
  const filled = text.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole))
  const match =
    /^\s*([^:]+\.spt)(?::(?:([A-Za-z_]\w*(?:<[\w, ]+>)?)\.)?([A-Za-z_]\w*)?\s*(?:\(\s*(\d+(?:\s*,\s*\d+)*)?\s*\))?)?\s*$/.exec(
      filled,
    )
  if (!match) throw new Error(`'${text}' is not of the form FILE.spt:kernel.schedule(1, 2)`)
  const [, file = '', kernel, schedule = '', list = ''] = match
  const args = list === '' ? [] : list.split(',').map(Number)
  return {
    text: filled.trim(),
    file,
    kernel: kernel ?? basename(file, '.spt').replaceAll('-', '_'),
    schedule,
    args,
  }
}

type Fields = Readonly<
  Record<string, { readonly standard: string | null; readonly candidates: readonly string[] }>
>

let fields: Fields | undefined

function allFields(): Fields {
  if (!fields) {
    const path = option('candidates') ?? packageFile('bench/candidates.json')
    const { about: _, ...all } = JSON.parse(readFileSync(path, 'utf8'))
    fields = all as Fields
  }
  return fields
}

/**
 * The candidates of a suite: those of `candidates.json`, or of what was asked for the ones whose kernels the suite has,
 * the first of them in place of the standard one.
 */
export function fieldOf(
  suite: string,
  asked: readonly string[],
  values: Readonly<Record<string, number>> = {},
): Field {
  const known = allFields()[suite]
  if (!known) throw new Error(`candidates.json has no suite ${suite}`)
  const parse = (text: string): Candidate => parseCandidate(text, values)
  const own = [...new Map(known.candidates.map((text) => [parse(text).text, parse(text)])).values()]
  const mine = asked.map(parse).filter((c) => own.some((o) => sameUse(o, c)))
  if (mine.length > 0) return { standard: mine[0]!.text, candidates: mine }
  const standard = known.standard === null ? null : parse(known.standard).text
  return { standard, candidates: own }
}

/** `spmm_long` takes the place of `spmm`: kernels go by the first word of their names. */
const sameUse = (a: Candidate, b: Candidate): boolean =>
  a.kernel.split(/[_<]/)[0] === b.kernel.split(/[_<]/)[0]

/** The fields in which a candidate may take the place of the usual ones. */
export const fieldsFor = (c: Candidate): readonly string[] =>
  Object.entries(allFields()).flatMap(([name, f]) =>
    f.candidates.some((o) => sameUse(parseCandidate(o, ANY), c)) ? [name] : [],
  )

/** What candidates may name of a case whose dense operand has `width` columns. */
export function widthValues(width: number): Readonly<Record<string, number>> {
  const lanes = Math.min(32, Math.max(1, Math.ceil(width / 4)))
  const atMost = (most: number): number => Math.min(most, lanes)
  const rows = Math.max(1, Math.floor(128 / lanes))
  const warps = Math.min(4, Math.max(1, Math.floor(width / 16)))
  return { n: width, lanes, l8: atMost(8), l16: atMost(16), rows, warps }
}

/** Values of some case, where any will do. */
export const ANY: Readonly<Record<string, number>> = { b: 16, top: 1, ...widthValues(32) }

/** Where a path leads, or a file of the package's `kernels`. */
export function fileOf(c: Candidate): string {
  const place = locate(c.file)
  return existsSync(place) ? place : packageFile(`kernels/${c.file}`)
}

const programs = new Map<string, { readonly program: SptProgram; readonly ms: number }>()

export interface Named {
  readonly kernel: Kernel
  /** Without the schedule. */
  readonly plain: Kernel
}

/** The program of a candidate, read once, and the milliseconds that reading and elaborating took. */
export async function programOf(
  c: Candidate,
): Promise<{ readonly program: SptProgram; readonly ms: number }> {
  const path = fileOf(c)
  let known = programs.get(path)
  if (!known) {
    const start = performance.now()
    known = { program: await load(path), ms: performance.now() - start }
    programs.set(path, known)
  }
  return known
}

/** The kernel that a candidate names. */
export async function kernelOf(c: Candidate): Promise<Named> {
  const { program } = await programOf(c)
  const plain = program.kernel(c.kernel)
  const kernel = c.schedule === '' ? plain : plain.schedule(c.schedule, ...c.args)
  return { kernel, plain }
}
