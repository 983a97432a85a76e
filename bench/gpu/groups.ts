/**
 * Groups of pairs with a matrix of weights for each group: relations of graphs and kernel maps of sparse convolutions from
 * `.npz` files of a data folder, which are recognised by their arrays, and members of families, of which those of the usual
 * size are always there.
 */
import { closeSync, existsSync, fstatSync, openSync, readdirSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { fail } from '../../src/ast/diagnostics/diagnostic.ts'
import { lexicographic } from '../../src/columns/lexicographic-sort.ts'
import { type CoordTensor, coords, readTensor } from '../../src/node.ts'
import { GROUP_FAMILIES, type GroupKind, type GroupPattern } from '../families/groups.ts'
import { generateMember } from '../families/matrix-family.ts'
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

/** Arrays that make an archive one of groups, and how they are read. */
interface Layout {
  readonly kind: GroupKind
  readonly arrays: readonly string[]
  read(path: string, members: ReadonlySet<string>): Promise<GroupPattern>
}

const LAYOUTS: readonly Layout[] = [
  { kind: 'relations', arrays: ['src', 'rel', 'dst'], read: triples },
  { kind: 'offsets', arrays: ['knnz', 'imap', 'omap'], read: kernelMap },
]

interface GroupFile {
  readonly kind: GroupKind
  read(): Promise<GroupPattern>
}

const NPZ = /\.npz$/

/** Files of a folder that hold groups, and so no matrix, by name without the ending. */
export function groupFiles(folder: string): ReadonlyMap<string, GroupFile> {
  const files = existsSync(folder) ? readdirSync(folder).filter((f) => NPZ.test(f)) : []
  return new Map(
    files.sort().flatMap((file) => {
      const path = join(folder, file)
      const members = membersOf(path)
      const layout = LAYOUTS.find((l) => l.arrays.every((a) => members.has(a)))
      return layout
        ? [[file.replace(NPZ, ''), { kind: layout.kind, read: () => layout.read(path, members) }] as const]
        : []
    }),
  )
}

/** Of a directory of a zip archive; an archive of groups has few members. */
const DIRECTORY_BYTES = 1 << 16
const ENTRY = { signature: 'PK\x01\x02', nameLength: 28, name: 46 }

/** Names of arrays, of which nothing is read; none of what is no archive. */
function membersOf(path: string): ReadonlySet<string> {
  const file = openSync(path, 'r')
  try {
    const about = fstatSync(file)
    const size = about.isFile() ? about.size : 0
    const end = Buffer.alloc(Math.min(size, DIRECTORY_BYTES))
    readSync(file, end, 0, end.length, size - end.length)
    const names = new Set<string>()
    for (let at = end.indexOf(ENTRY.signature); at >= 0; at = end.indexOf(ENTRY.signature, at + 1)) {
      if (at + ENTRY.name > end.length) break
      const from = at + ENTRY.name
      const name = end.toString('latin1', from, from + end.readUInt16LE(at + ENTRY.nameLength))
      names.add(name.replace(/\.npy$/, ''))
    }
    return names
  } finally {
    closeSync(file)
  }
}

const KINDS = Object.keys(GROUP_FAMILIES) as GroupKind[]

/** Names of files of a folder, and of families. */
export const groupNames = (folder: string): readonly string[] => [
  ...groupFiles(folder).keys(),
  ...KINDS.flatMap((kind) => Object.keys(GROUP_FAMILIES[kind])),
]

/** The kind of groups that a name of `--matrices` has: of a file, or of a member of a family. */
export const groupKind = (name: string, folder: string): GroupKind | undefined =>
  groupFiles(folder).get(name)?.kind ?? KINDS.find((kind) => name.split(':')[0]! in GROUP_FAMILIES[kind])

export interface GroupSource {
  readonly name: string
  read(): Promise<Groups>
}

/** Groups of a kind: those that are asked for, in that order, or all. `missing`: the arrays that no file has. */
export function groupSources(
  kind: GroupKind,
  folder: string,
  asked: readonly string[],
  quick: boolean,
): { readonly found: readonly GroupSource[]; readonly missing: readonly string[] } {
  const files = groupFiles(folder)
  const own = [...files].flatMap(([name, f]) => (f.kind === kind ? [name] : []))
  const families = Object.keys(GROUP_FAMILIES[kind])
  const names =
    asked.length > 0
      ? asked.filter((name) => groupKind(name, folder) === kind)
      : [...own, ...families.filter((f) => !files.has(f)).slice(0, quick ? 1 : undefined)]
  const layout = LAYOUTS.find((l) => l.kind === kind)
  return {
    found: names.map((name) => ({
      name,
      async read() {
        const pattern = (await files.get(name)?.read()) ?? generateMember(GROUP_FAMILIES[kind], name)
        return pattern ? grouped(name, kind, pattern) : noMember(name)
      },
    })),
    missing:
      layout && asked.length === 0 && own.length === 0
        ? [`a .npz with the arrays ${layout.arrays.join(', ')}`]
        : [],
  }
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
async function triples(path: string, members: ReadonlySet<string>): Promise<GroupPattern> {
  const given = async (name: string): Promise<number> => (members.has(name) ? scalar(path, name) : 0)
  const [r, i, j] = await columns(path, ['rel', 'dst', 'src'])
  const relations = Math.max(await given('num_relations'), 1 + largest(r))
  const nodes = Math.max(await given('num_nodes'), 1 + largest(i), 1 + largest(j))
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
  if (from !== i.length)
    fail({
      code: 'bench/no-matrix',
      message: `'${path}': knnz counts ${from} pairs, and there are ${i.length}`,
      expected: 'how many pairs of imap and omap each offset has',
    })
  const voxels = 1 + Math.max(largest(i), largest(j))
  return { shape: [sizes.length, voxels, voxels], coords: [g, i, j] }
}

const largest = (values: Int32Array): number => values.reduce((a, b) => Math.max(a, b), -1)

async function columns(
  path: string,
  names: readonly string[],
): Promise<[Int32Array, Int32Array, Int32Array]> {
  const t = await readTensor(`${path}#${names.join(',')}`)
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
