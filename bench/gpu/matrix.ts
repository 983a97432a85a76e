/**
 * The matrices of the comparison: files of a data folder, synthetic graphs of the sizes of well-known ones, and members of
 * families of matrices where they are asked for.
 */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fail } from '../../src/ast/diagnostics/diagnostic.ts'
import { lexicographic } from '../../src/columns/lexicographic-sort.ts'
import { readTensor } from '../../src/node.ts'
import { FAMILIES, generateMatrix } from '../families.ts'
import { ARXIV_LIKE, type PowerLaw, powerLaw, REDDIT_LIKE } from '../power-law.ts'
import { groupFiles, groupNames } from './groups.ts'
import { fillNormal } from './random.ts'

/** A matrix by rows, columns ascending; values are random normal ones. */
export interface Csr {
  readonly name: string
  readonly rows: number
  readonly columns: number
  readonly indptr: Int32Array
  readonly indices: Int32Array
  readonly values: Float32Array
}

export const nonzeros = (A: Csr): number => A.indices.length

/** Files in the order of the tables, small ones first. */
const FILES = [
  'cora.mtx',
  'citeseer.mtx.gz',
  'radixnet-1024.npz',
  'ldg-diffusion.npz',
  'pubmed.mtx.gz',
  'ca-condmat.mtx.gz',
  'bcsstk16.npz',
  'facebook-jhu.npz',
  'ppi-pathways.npz',
]
const SYNTHETIC: Readonly<Record<string, PowerLaw>> = {
  'arxiv-like': ARXIV_LIKE,
  'reddit-like': REDDIT_LIKE,
}
/** What `--quick` takes. */
const QUICK = ['cora', 'ca-condmat', 'facebook-jhu', 'ppi-pathways']

export interface Source {
  readonly name: string
  read(): Promise<Csr>
}

/** Files of matrices, whatever they are called. */
const MATRIX = /\.(npz|(mtx|smtx|edges|el)(\.gz)?)$/

const nameOf = (file: string): string => file.replace(MATRIX, '')

/** Files by what they are called: without their ending, but for those whose name another one has already. */
function namesOf(files: readonly string[]): ReadonlyMap<string, string> {
  const taken = new Set(Object.keys(SYNTHETIC))
  const known = (f: string): number => (FILES.includes(f) ? 0 : 1)
  const inOrder = [...files].sort((a, b) => known(a) - known(b) || (a < b ? -1 : 1))
  return new Map(
    inOrder.map((file) => {
      const name = taken.has(nameOf(file)) ? file : nameOf(file)
      taken.add(name)
      return [file, name]
    }),
  )
}

function filesOf(folder: string): string[] {
  const groups = groupFiles(folder)
  const isMatrix = (f: string): boolean =>
    MATRIX.test(f) && !(f.endsWith('.npz') && groups.has(f.replace(MATRIX, '')))
  return existsSync(folder) ? readdirSync(folder).filter(isMatrix) : []
}

/**
 * The matrices there are, without reading them yet: those that are asked for, in that order, or those of the tables and then
 * all others of the folder. What is missing of the tables is named in `missing`.
 * @throws SptError `bench/no-matrix`
 */
export function sources(
  folder: string,
  asked: readonly string[],
  quick: boolean,
): { readonly found: readonly Source[]; readonly missing: readonly string[] } {
  const wanted = (name: string): boolean =>
    asked.length > 0 ? asked.includes(name) : !quick || QUICK.includes(name)
  const found: Source[] = []
  const missing: string[] = []
  const there = filesOf(folder)
  const others = there.filter((f) => !FILES.includes(f)).sort()
  const names = namesOf(there)
  for (const file of FILES) {
    const name = nameOf(file)
    if (!wanted(name)) continue
    const path = join(folder, file)
    if (existsSync(path)) found.push({ name, read: () => fromFile(path, name) })
    else if (others.length === 0 || asked.includes(name)) missing.push(name)
  }
  for (const file of others) {
    const name = names.get(file)!
    const path = join(folder, file)
    if (asked.length === 0 || asked.includes(name)) found.push({ name, read: () => fromFile(path, name) })
  }
  for (const [name, shape] of Object.entries(SYNTHETIC))
    if (wanted(name)) found.push({ name, read: async () => synthetic(name, shape) })
  // Families are drawn where they are asked for: of any size, and as many as there are seeds.
  const files = new Set(names.values())
  const drawn = asked.filter((a) => a.split(':')[0]! in FAMILIES && !files.has(a))
  for (const name of drawn) found.push({ name, read: async () => fromPattern(name) })
  const candidates = [
    ...names.values(),
    ...Object.keys(SYNTHETIC),
    ...Object.keys(FAMILIES),
    ...groupNames(folder),
  ]
  const known = [...FILES.map(nameOf), ...candidates, ...drawn]
  const [absent] = found.length === 0 ? asked : asked.filter((a) => !known.includes(a))
  if (absent !== undefined || found.length === 0)
    fail({
      code: 'bench/no-matrix',
      message:
        absent === undefined
          ? `there is no matrix in '${folder}'`
          : `there is no matrix ${absent} in '${folder}'`,
      expected:
        absent === undefined
          ? 'files that end in .mtx, .mtx.gz, .npz, .smtx, .el or .edges'
          : `some of ${candidates.join(', ')}`,
      ...(absent === undefined ? {} : { lookup: { name: absent, candidates } }),
      hint: 'name the folder with --data FOLDER, its matrices with --matrices',
    })
  if (asked.length === 0) return { found, missing }
  const byName = new Map(found.map((s) => [s.name, s]))
  return { found: asked.flatMap((name) => byName.get(name) ?? []), missing }
}

/** @throws SptError `bench/no-matrix` */
function fromPattern(name: string): Csr {
  const drawn = generateMatrix(name)
  if (!drawn)
    return fail({
      code: 'bench/no-matrix',
      message: `${name} is no member of a family`,
      expected: 'FAMILY, FAMILY:ROWS or FAMILY:ROWS:SEED, such as road:100000:7',
    })
  return sorted(name, drawn.shape, [drawn.rows, drawn.columns])
}

async function fromFile(path: string, name: string): Promise<Csr> {
  const t = await readTensor(path)
  if (t.kind !== 'coords' || t.shape.length !== 2)
    return fail({
      code: 'bench/no-matrix',
      message: `'${path}' holds no sparse matrix: ${t.kind === 'dense' ? 'a dense array' : `${t.shape.length} dimensions`}`,
      expected: 'coordinates over two dimensions',
    })
  return sorted(name, t.shape as readonly [number, number], t.coords)
}

function sorted(name: string, shape: readonly [number, number], coords: readonly Int32Array[]): Csr {
  const { columns } = lexicographic(
    coords,
    shape.map((n) => Math.max(0, n - 1)),
  )
  const [i, j] = columns as readonly [Int32Array, Int32Array]
  return csrOf(name, shape, i, j)
}

/** From coordinates in lexicographic order; equal ones are one element. */
function csrOf(name: string, shape: readonly [number, number], i: Int32Array, j: Int32Array): Csr {
  const [rows, columns] = shape
  const indptr = new Int32Array(rows + 1)
  const indices = new Int32Array(j.length)
  let at = 0
  for (let e = 0; e < j.length; e++) {
    if (e > 0 && i[e] === i[e - 1] && j[e] === j[e - 1]) continue
    indices[at++] = j[e]!
    indptr[i[e]! + 1]!++
  }
  for (let r = 0; r < rows; r++) indptr[r + 1]! += indptr[r]!
  return withValues({ name, rows, columns, indptr, indices: indices.slice(0, at) })
}

function synthetic(name: string, shape: PowerLaw): Csr {
  const { indptr, indices } = powerLaw(shape, 'j').arrays.j ?? {}
  if (!indptr || !indices) throw new Error('the generator gave no rows')
  return withValues({ name, rows: shape.nodes, columns: shape.nodes, indptr, indices })
}

const withValues = (A: Omit<Csr, 'values'>): Csr => ({
  ...A,
  values: fillNormal(new Float32Array(A.indices.length), A.indices.length),
})

/** A matrix in a line. */
export function describe(A: Csr): string {
  let longest = 0
  let empty = 0
  for (let r = 0; r < A.rows; r++) {
    const n = A.indptr[r + 1]! - A.indptr[r]!
    if (n > longest) longest = n
    if (n === 0) empty++
  }
  const mean = nonzeros(A) / A.rows
  return `${A.name}: ${A.rows} × ${A.columns}, ${nonzeros(A)} nonzeros, rows of ${mean.toFixed(1)} on average, longest ${longest}, ${empty} empty`
}
