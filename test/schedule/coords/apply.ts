/** Stage I after `as`, on data that were split by hand. */
import { parseProgram, type SptProgram } from '../../../src/api/programs/program.ts'
import type { Kernel1 } from '../../../src/ir/coordinates/stage1.ts'
import { segmentsOf } from '../../../src/ir/formats/format-tables.ts'
import { type RefInputs, type RefResult, reference } from '../../../src/reference/index.ts'
import type { Compilation } from '../../../src/run/compile/compile.ts'
import { verify1 } from '../../../src/verifiers/stage1.ts'
import { constantOf, type Entry, type Given, type Held, splitBruteForce } from './split-by-hand.ts'

/** Programs of texts that are tried in many formats: reading a text takes longer than all the rest. */
const programs = new Map<string, SptProgram>()

/** The kernel `k` of a text under steps on coordinates. */
export function compilationOf(text: string, steps: string): Compilation {
  const [, buffer, format] = /^(\w+) as (.*)$/.exec(steps) ?? []
  if (buffer === undefined || format === undefined)
    return parseProgram(`${text}\nschedule k.s {\n${steps}\n}`).kernel('k').schedule('s').compilation
  const program = programs.get(text) ?? parseProgram(text)
  programs.set(text, program)
  return program.kernel('k').as(buffer, format).compilation
}

/** As written, and under the steps. */
export function pair(text: string, steps: string): { readonly source: Kernel1; readonly kernel: Kernel1 } {
  const { source, kernel } = compilationOf(text, steps)
  return { source, kernel }
}

export interface Data {
  readonly sizes: Readonly<Record<string, number>>
  /** The structure that all split tensors have. */
  readonly coords: readonly (readonly number[])[]
  /** Values by input over that structure. */
  readonly values: Readonly<Record<string, readonly number[]>>
  /** Dense inputs, row-major. */
  readonly dense: Readonly<Record<string, readonly number[]>>
  readonly lists?: Readonly<Record<string, readonly number[]>>
}

/** Results of the kernel as written and of the kernel after its only `as`, in the same coordinates. */
export function bothResults(source: Kernel1, kernel: Kernel1, data: Data) {
  verify1(kernel)
  const columns =
    source.buffers.length === 0 ? [] : (data.coords[0]?.map((_, d) => data.coords.map((c) => c[d]!)) ?? [])
  const [reformat] = kernel.reformats
  const over = reformat!.from.map((a) => a.name)
  const cols = over.map((_, d) => columns[d] ?? [])
  const leaf = over[over.length - 1]!
  const before = reference(source, {
    params: data.sizes,
    buffers: {
      ...data.dense,
      ...Object.fromEntries(Object.entries(data.values).map(([b, values]) => [b, { coords: cols, values }])),
    },
    structure: { [leaf]: { coords: cols } },
  })
  const { inputs, held } = inputsOf(kernel, data)
  const plain = { ...kernel, reformats: [], buffers: kernel.buffers.map((b) => ({ ...b, table: false })) }
  const after = reference(plain, inputs)
  const split = new Map(reformat!.buffers.map((b) => [b.name, b.parts]))
  const got: Record<string, RefResult | Map<string, number>> = {}
  const wanted: Record<string, RefResult | Map<string, number>> = {}
  for (const [name, want] of Object.entries(before.buffers)) {
    const parts = split.get(name)
    wanted[name] = parts && want.kind === 'sparse' ? lines(want) : want
    got[name] = parts
      ? together(
          parts.map((p) => after.buffers[p]!),
          held,
        )
      : after.buffers[name]!
  }
  return { got, wanted }
}

const lines = (r: Extract<RefResult, { kind: 'sparse' }>): Map<string, number> =>
  new Map([...r.values].map((v, e) => [r.coords.map((c) => c[e]!).join(), v + 0] as const).sort(byKey))

const byKey = (a: readonly [string, number], b: readonly [string, number]): number => (a[0] < b[0] ? -1 : 1)

/** The values of the parts at the coordinates that each holds. */
function together(parts: readonly RefResult[], held: readonly Held[]): Map<string, number> {
  const out: (readonly [string, number])[] = []
  parts.forEach((r, k) => {
    const at = new Map<string, number>()
    if (r.kind === 'sparse')
      for (const [e, v] of r.values.entries()) at.set(r.coords.map((c) => c[e]!).join(), v)
    else
      r.values.forEach((v, e) => {
        let rest = e
        const c = [...r.shape].reverse().map((n) => {
          const x = rest % n
          rest = Math.floor(rest / n)
          return x
        })
        at.set(c.reverse().join(), v)
      })
    for (const e of held[k]!.entries) out.push([e.at.join(), at.get(e.placed.join())! + 0])
  })
  return new Map(out.sort(byKey))
}

/** Inputs of a kernel after one `as`, as if its parts were tensors of their own. */
export function inputsOf(kernel: Kernel1, data: Data): { inputs: RefInputs; held: readonly Held[] } {
  const reformat = kernel.reformats[0]!
  const lists = new Map(Object.entries(data.lists ?? {}))
  const sizes = new Map(Object.entries(data.sizes))
  for (const [name, list] of lists) sizes.set(segmentsOf(name), list.length - 1)
  const given: Given = { sizes, lists }
  const values = data.values[reformat.source!] ?? data.coords.map(() => 1)
  const held = splitBruteForce(
    reformat.instance,
    data.coords.map((at, e): Entry => ({ at, value: values[e]! })),
    given,
  )
  const index = new Map(data.coords.map((c, e) => [c.join(), e]))
  const params: Record<string, number> = Object.fromEntries(sizes)
  const buffers: Record<string, RefInputs['buffers'][string]> = { ...data.dense }
  const structure: Record<string, { coords: number[][] }> = {}
  held.forEach((h, k) => {
    const { axes, order, tables } = h.part.instance
    for (const t of tables) buffers[t.name] = [...h.tables.get(t.name)!]
    for (const { name } of h.part.instance.measured) params[name] = measure(name, h)
    const padding = paddingOf(h, kernel, sizes)
    const columns = order.map((_, d) => [...h.entries.map((e) => e.placed[d]!), ...padding.map((p) => p[d]!)])
    for (const b of reformat.buffers) {
      const own = data.values[b.name]
      if (own)
        buffers[b.parts[k]!] = {
          coords: columns,
          values: [...h.entries.map((e) => own[index.get(e.at.join())!]!), ...padding.map(() => Number.NaN)],
        }
    }
    for (const a of axes)
      if (!axes.some((x) => x.parent === a.name) && a.kind !== 'dense_fixed') {
        const chain = chainOf(a.name, axes)
        structure[a.name] = { coords: chain.map((n) => columns[order.indexOf(n)]!) }
      }
  })
  // A sparse axis with dense axes below is told apart by its own chain.
  held.forEach((h) => {
    for (const a of h.part.instance.axes)
      if (a.kind === 'dense_fixed' && a.parent !== null && !(a.name in structure)) {
        const chain = chainOf(a.name, h.part.instance.axes)
        structure[a.name] = {
          coords: chain.map((n) => h.entries.map((e) => e.placed[h.part.instance.order.indexOf(n)]!)),
        }
      }
  })
  return { inputs: { params, buffers, structure }, held }
}

function chainOf(name: string, axes: Held['part']['instance']['axes']): string[] {
  const parent = axes.find((a) => a.name === name)!.parent
  return parent === null ? [name] : [...chainOf(parent, axes), name]
}

/** A measured width: the most coordinates under one parent. */
function measure(name: string, h: Held): number {
  const { axes, order } = h.part.instance
  const axis = axes.find((a) => a.kind === 'sparse_fixed' && a.width.kind === 'var' && a.width.name === name)!
  const above = chainOf(axis.parent!, axes).map((n) => order.indexOf(n))
  const counts = new Map<string, Set<number>>()
  for (const e of h.entries) {
    const key = above.map((d) => e.placed[d]!).join()
    counts.set(key, (counts.get(key) ?? new Set()).add(e.placed[order.indexOf(axis.name)]!))
  }
  return Math.max(0, ...[...counts.values()].map((s) => s.size))
}

/** Positions of dense axes beside stored ones that are no coordinates of the tensor: where NaN must not be seen. */
function paddingOf(h: Held, kernel: Kernel1, sizes: ReadonlyMap<string, number>): number[][] {
  const { axes, order, inverse, tables } = h.part.instance
  const free = axes.filter(
    (a) => a.kind === 'dense_fixed' && a.parent === null && !axes.some((x) => x.parent === a.name),
  )
  if (free.length === 0 || tables.length > 0) return []
  const out = new Map<string, number[]>()
  const over = kernel.reformats[0]!.from
  for (const e of h.entries) {
    let all: number[][] = [[...e.placed]]
    for (const a of free) {
      const d = order.indexOf(a.name)
      const n = constantOf(a.extent, sizes)
      all = all.flatMap((p) => Array.from({ length: n }, (_, c) => p.map((x, k) => (k === d ? c : x))))
    }
    for (const p of all) {
      const env = new Map([...sizes, ...order.map((n, d) => [n, p[d]!] as const)])
      const inside = inverse.every((x, k) => {
        const c = constantOf(x, env)
        const a = over[k]!
        return c >= 0 && 'extent' in a && c < constantOf(a.extent, sizes)
      })
      if (!inside) out.set(p.join(), p)
    }
  }
  return [...out.values()]
}
