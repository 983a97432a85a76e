/** A cache of compiled kernels: one for each structure of a launch and number of fused launches. */
import { invariant } from '../../../../ast/diagnostics/diagnostic.ts'
import { emit, type ModuleText, targetOf } from '../../../../backends/targets/index.ts'
import { type Expr, lt, sub, variable } from '../../../../ir/expressions/expr.ts'
import {
  allocatedNames,
  renameBound,
  renameBuffer,
  substituteStmts,
} from '../../../../ir/statements/bindings.ts'
import type { Stmt } from '../../../../ir/statements/loops.ts'
import { when } from '../../../../ir/statements/statement-builders.ts'
import { walkStmts } from '../../../../ir/statements/tree.ts'
import { lowerToMemory } from '../../../../lower/pipeline.ts'
import type { CompiledModule, Device } from '../../../../runtime/device.ts'
import { isWord } from '../../../../runtime/webgpu/widened-elements.ts'
import { columnOf, kernelOf, type LaunchSpec, THREADS, type Use } from '../kernels/kernel-builder.ts'

interface Argument {
  /** `length`: the length of a column, by which generated code clamps reads. */
  readonly kind: 'buffer' | 'length' | 'size'
  readonly name: string
  readonly launch: number
}

export interface Kernel {
  readonly module: CompiledModule
  readonly entry: string
  readonly args: readonly Argument[]
}

/** A kernel that is compiled or in compilation. */
export interface Slot {
  readonly key: string
  /** `null` while it is being compiled. */
  kernel: Kernel | null
  readonly compiled: Promise<Kernel>
}

type Target = ModuleText['target']

/** Threads per block. */
export const BLOCK = 128

/** Shared by all devices. */
const MAX_CACHED = 2000
const texts = new Map<string, ModuleText>()
let parseName = 0

/** The source for `count` fused launches; it depends only on the launch's structure. */
function sourceOf(
  launchKey: string,
  spec: LaunchSpec,
  count: number,
  target: Target,
  f16: boolean,
): ModuleText {
  const key = `${target} ${f16} ${launchKey}`
  const cached = texts.get(key)
  if (cached) return cached
  const name = `convert_${parseName++}`
  const plan = lowerToMemory(kernelOf(count > 1 ? fuseLaunches(spec, count, BLOCK) : spec, name, BLOCK))
  const [text, rest] = emit(plan, target, { f16 })
  invariant(text && !rest && text.entries.length === 1, `${spec.key} is not one launch`)
  for (const [old] of texts) if (texts.size >= MAX_CACHED) texts.delete(old)
  texts.set(key, text)
  return text
}

export class Kernels {
  readonly #device: Device
  readonly #slots = new Map<string, Slot>()

  constructor(device: Device) {
    this.#device = device
  }

  of(spec: LaunchSpec): Slot {
    const key = structureOf(spec)
    return this.#slots.get(key) ?? this.#add(key, spec, 1)
  }

  fusedSlot(slot: Slot, spec: LaunchSpec, count: number): Slot {
    const key = `${count} ${slot.key}`
    return this.#slots.get(key) ?? this.#add(key, spec, count)
  }

  async release(): Promise<void> {
    for (const s of this.#slots.values()) (await s.compiled).module.release()
    this.#slots.clear()
  }

  #add(key: string, spec: LaunchSpec, count: number): Slot {
    const slot: Slot = { key, kernel: null, compiled: this.#compile(key, spec, count) }
    slot.compiled.then(
      (kernel) => {
        slot.kernel = kernel
      },
      // Awaiting callers see the failure.
      () => {},
    )
    this.#slots.set(key, slot)
    return slot
  }

  async #compile(key: string, spec: LaunchSpec, count: number): Promise<Kernel> {
    const text = sourceOf(key, spec, count, targetOf(this.#device), !isWord(this.#device, 'f16'))
    const entry = text.entries[0]!
    const parseName = (name: string) => (count > 1 ? parseInstanceName(name) : { name, launch: 0 })
    return {
      module: await this.#device.compile(text),
      entry: entry.name,
      args: entry.args.map((a) => {
        if (a.kind === 'buffer') return { kind: 'buffer', ...parseName(a.name) }
        const column = parseName(columnOf(a.name) ?? '')
        return column.name in spec.columns
          ? { kind: 'length', ...column }
          : { kind: 'size', ...parseName(a.name) }
      }),
    }
  }
}

function structureOf({ key, columns, sizes }: LaunchSpec): string {
  let out = `${key}(`
  for (const name in columns) {
    const use = columns[name]!
    out += `${name}:${use.column.dtype}:${use.access},`
  }
  out += ';'
  for (const name in sizes) out += `${name},`
  return out
}

// Horizontal fusion of launches: several launches of one structure become one kernel with consecutive blocks, each with
// the columns and sizes of its launch. For small launches the launch overhead dominates.

/** Name of the size that ends a launch's range of threads (or blocks) in the fused kernel. */
export const END = 'x_end'

const instanceName = (name: string, k: number): string => `${name}_of${k}`

/** Splits a name in a fused kernel into the original name and the launch number; −1: shared by all launches. */
function parseInstanceName(name: string): { readonly name: string; readonly launch: number } {
  const match = /^(.*)_of(\d+)$/.exec(name)
  return match ? { name: match[1]!, launch: Number(match[2]) } : { name, launch: -1 }
}

/** The fusion of `count` launches with the structure of `spec`; each starts at a multiple of `block` threads. */
function fuseLaunches(spec: LaunchSpec, count: number, block: number): LaunchSpec {
  const columns: Record<string, Use> = {}
  const sizes: Record<string, number> = {}
  for (let k = 0; k < count; k++) {
    for (const [name, use] of Object.entries(spec.columns)) columns[instanceName(name, k)] = use
    for (const name of [...Object.keys(spec.sizes ?? {}), THREADS, END]) sizes[instanceName(name, k)] = 0
  }
  return {
    key: spec.key,
    threads: block,
    ...(spec.shared && { shared: true }),
    columns,
    sizes,
    body: (e) => {
      const sharedMemory = new Map<string, Stmt>()
      const instances = Array.from({ length: count }, (_, k) => {
        const index = k === 0 ? e : sub(e, variable(instanceName(END, k - 1)))
        const body = renameInstance(spec, index, k, sharedMemory)
        return spec.shared ? body : [when(lt(index, variable(instanceName(THREADS, k))), body)]
      })
      const dispatch = instances.reduceRight<readonly Stmt[]>(
        (otherwise, body, k) => [when(lt(e, variable(instanceName(END, k))), body, otherwise)],
        [],
      )
      return [...sharedMemory.values(), ...dispatch]
    },
  }
}

/** The body of launch `k` with renamed variables. Shared memory is declared once for all launches. */
function renameInstance(
  spec: LaunchSpec,
  index: Expr,
  k: number,
  sharedMemory: Map<string, Stmt>,
): readonly Stmt[] {
  let body = spec.body(index)
  const renames = new Map<string, string>()
  const buffers = new Set(Object.keys(spec.columns))
  walkStmts(body, (s) => {
    if (s.kind === 'for') renames.set(s.var, instanceName(s.var, k))
    if (s.kind === 'let') renames.set(s.name, instanceName(s.name, k))
    if (s.kind !== 'alloc') return
    if (s.buffer.scope === 'shared') sharedMemory.set(s.buffer.name, s)
    else buffers.add(s.buffer.name)
  })
  body = body.filter((s) => !(s.kind === 'alloc' && s.buffer.scope === 'shared'))
  invariant(allocatedNames(body, 'shared').size === 0, 'memory of a block is declared first')
  for (const name of buffers) body = renameBuffer(body, name, instanceName(name, k))
  const sizes = [...Object.keys(spec.sizes ?? {}), THREADS].map(
    (n) => [n, variable(instanceName(n, k))] as const,
  )
  return substituteStmts(renameBound(body, renames), new Map(sizes))
}

/** Numbers of launches with fused kernels; surplus launches have no threads, so a few kernels cover all numbers. */
const COUNTS = [2, 3, 4, 6, 8, 12, 16, 24, 32]
export const fusedCount = (n: number): number => (n < 2 ? n : COUNTS.find((c) => c >= n)!)
