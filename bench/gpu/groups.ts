/**
 * Groups of pairs with a matrix of weights for each group: relations of graphs and kernel maps of sparse convolutions from
 * files of a data folder, and members of families, of which those of the usual size are always there.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fail } from '../../src/ast/diagnostic.ts'
import { lexicographic } from '../../src/columns/lexicographic-sort.ts'
import { type CoordTensor, coords, readTensor } from '../../src/node.ts'
import { drawn } from '../families/drawn.ts'
import { GROUP_FAMILIES, type GroupKind, type GroupPattern } from '../families/groups.ts'
import { fillNormal } from './random.ts'

/** By group, row and column ascending; values are random normal ones. */
export interface Groups {
  readonly name: string
  readonly kind: GroupKind
  readonly groups: number
  readonly rows: number
  readonly columns: number
  readonly coords: GroupPattern['coords']
  readonly values: Float32Array
}

export const pairsOf = (G: Groups): number => G.values.length

interface GroupFile {
  readonly file: string
  read(path: string): Promise<GroupPattern>
}

const FILES: Readonly<Record<GroupKind, readonly GroupFile[]>> = {
  relations: ['fb15k-237.npz', 'aifb.npz'].map((file) => ({ file, read: triples })),
  offsets: [{ file: 'minkunet-layer.npz', read: kernelMap }],
  experts: [],
}

/** Files that hold groups, and so no matrix. */
export const GROUP_FILES: readonly string[] = Object.values(FILES).flatMap((all) => all.map((f) => f.file))

const KINDS = Object.keys(GROUP_FAMILIES) as GroupKind[]

const nameOf = ({ file }: GroupFile): string => file.replace('.npz', '')

const namesOf = (kind: GroupKind): string[] => [
  ...FILES[kind].map(nameOf),
  ...Object.keys(GROUP_FAMILIES[kind]),
]

/** Names of files and families. */
export const groupNames = (): readonly string[] => KINDS.flatMap(namesOf)

/** What a name of `--matrices` is of, where it names groups: a file or a member of a family. */
export const groupKind = (name: string): GroupKind | undefined =>
  KINDS.find((kind) => namesOf(kind).includes(name) || name.split(':')[0]! in GROUP_FAMILIES[kind])

export interface GroupSource {
  readonly name: string
  read(): Promise<Groups>
}

/** Groups of a kind: those that are asked for, or all; what of the files is not there is named in `missing`. */
export function groupSources(
  kind: GroupKind,
  folder: string,
  asked: readonly string[],
  quick: boolean,
): { readonly found: readonly GroupSource[]; readonly missing: readonly string[] } {
  const mine = asked.filter((name) => groupKind(name) === kind)
  const found: GroupSource[] = []
  const missing: string[] = []
  for (const f of FILES[kind]) {
    const [name, path] = [nameOf(f), join(folder, f.file)]
    if (asked.length > 0 && !mine.includes(name)) continue
    if (!existsSync(path)) missing.push(name)
    else found.push({ name, read: async () => grouped(name, kind, await f.read(path)) })
  }
  const files = FILES[kind].map(nameOf)
  const families = Object.keys(GROUP_FAMILIES[kind])
  const members =
    asked.length > 0 ? mine.filter((name) => !files.includes(name)) : families.slice(0, quick ? 1 : undefined)
  for (const name of members)
    found.push({
      name,
      async read() {
        const pattern = drawn(GROUP_FAMILIES[kind], name)
        return pattern ? grouped(name, kind, pattern) : noMember(name)
      },
    })
  return { found, missing }
}

/** @throws SptError `bench/no-matrix` */
export const noMember = (name: string): never =>
  fail({
    code: 'bench/no-matrix',
    message: `${name} is no member of a family`,
    expected: 'FAMILY, FAMILY:ROWS or FAMILY:ROWS:SEED, such as relations:20000:7',
  })

/** In order; equal pairs of a group are one. */
export function grouped(name: string, kind: GroupKind, { shape, coords }: GroupPattern): Groups {
  const [groups, rows, columns] = shape
  const sorted = lexicographic(
    coords,
    shape.map((n) => Math.max(0, n - 1)),
  ).columns
  const [g, i, j] = sorted.map((c) => c.slice()) as [Int32Array, Int32Array, Int32Array]
  let count = 0
  for (let e = 0; e < g.length; e++) {
    if (count > 0 && g[e] === g[count - 1] && i[e] === i[count - 1] && j[e] === j[count - 1]) continue
    g[count] = g[e]!
    i[count] = i[e]!
    j[count] = j[e]!
    count++
  }
  const values = fillNormal(new Float32Array(count), Date.now() & 0xffff)
  const own = [g, i, j].map((c) => c.slice(0, count)) as [Int32Array, Int32Array, Int32Array]
  return { name, kind, groups, rows, columns, coords: own, values }
}

/** As a kernel's first input with so many axes: over groups, rows and columns, or over groups and the rows that are columns. */
export function tensorOf(G: Groups, axes: number): CoordTensor {
  const { groups, rows, columns, values } = G
  const [g, i, j] = G.coords
  if (axes === 3) return coords([groups, rows, columns], [g, i, j], values)
  if (axes === 2 && G.kind === 'experts') return coords([groups, rows], [g, i], values)
  throw new Error(`${G.name} is no input of ${axes} axes`)
}

/**
 * A graph's triples (source, relation, target), of which the target's row gets the source's. Where edges do not lie both ways,
 * the inverse relations are added.
 */
async function triples(path: string): Promise<GroupPattern> {
  const [relations, nodes] = [await scalar(path, 'num_relations'), await scalar(path, 'num_nodes')]
  const [r, i, j] = await columns(path, ['rel', 'dst', 'src'], [relations, nodes, nodes])
  if (bothWays(i, j, nodes)) return { shape: [relations, nodes, nodes], coords: [r, i, j] }
  const inverse = r.map((relation) => relations + relation)
  return {
    shape: [2 * relations, nodes, nodes],
    coords: [joined(r, inverse), joined(i, j), joined(j, i)],
  }
}

/** Whether from each node to each other one as many edges lead as back. */
function bothWays(i: Int32Array, j: Int32Array, nodes: number): boolean {
  const surplus = new Map<number, number>()
  for (let e = 0; e < i.length; e++) {
    const [a, b] = [i[e]!, j[e]!]
    const key = Math.min(a, b) * nodes + Math.max(a, b)
    surplus.set(key, (surplus.get(key) ?? 0) + Math.sign(a - b))
  }
  return [...surplus.values()].every((n) => n === 0)
}

/** Pairs of output and input voxels, offset by offset. */
async function kernelMap(path: string): Promise<GroupPattern> {
  const counts = await readTensor(`${path}#knnz`)
  const [i, j] = await columns(path, ['omap', 'imap'])
  const sizes = counts.values ?? []
  const g = new Int32Array(i.length)
  let from = 0
  for (let k = 0; k < sizes.length; k++) {
    const to = from + Number(sizes[k])
    g.fill(k, from, to)
    from = to
  }
  const voxels =
    1 +
    i.reduce(
      (a, b) => Math.max(a, b),
      j.reduce((a, b) => Math.max(a, b), -1),
    )
  return { shape: [sizes.length, voxels, voxels], coords: [g, i, j] }
}

async function columns(
  path: string,
  names: readonly string[],
  shape?: readonly number[],
): Promise<[Int32Array, Int32Array, Int32Array]> {
  const t = await readTensor(`${path}#${names.join(',')}`, { shape })
  if (t.kind !== 'coords') throw new Error(`'${path}' holds no coordinates`)
  return [...t.coords] as [Int32Array, Int32Array, Int32Array]
}

async function scalar(path: string, name: string): Promise<number> {
  return Number((await readTensor(`${path}#${name}`)).values?.[0])
}

function joined(a: Int32Array, b: Int32Array): Int32Array {
  const out = new Int32Array(a.length + b.length)
  out.set(a)
  out.set(b, a.length)
  return out
}

/** Groups in a line. */
export function describeGroups(G: Groups): string {
  const sizes = new Int32Array(G.groups)
  for (const g of G.coords[0]) sizes[g]!++
  const degrees = new Int32Array(G.rows)
  for (const i of G.coords[1]) degrees[i]!++
  const most = (counts: Int32Array): number => counts.reduce((a, b) => Math.max(a, b), 0)
  const empty = sizes.filter((n) => n === 0).length
  return `${G.name}: ${G.groups} groups, ${G.rows} × ${G.columns}, ${pairsOf(G)} pairs, largest group ${most(sizes)}, ${empty} empty, longest row ${most(degrees)}`
}
