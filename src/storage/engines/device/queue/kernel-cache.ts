/** A cache of compiled kernels: one for each structure of a launch and number of fused launches. */
import { invariant } from '../../../../ast/diagnostics/diagnostic.ts'
import { emit, type ModuleText, targetOf } from '../../../../backends/targets/index.ts'
import { lowerToMemory } from '../../../../lower/pipeline.ts'
import type { CompiledModule, Device } from '../../../../runtime/device.ts'
import { isWord } from '../../../../runtime/webgpu/widened-elements.ts'
import { columnOf, kernelOf, type LaunchSpec } from '../kernels/kernel-builder.ts'
import { fuseLaunches, parseInstanceName } from './batch-launches.ts'

export interface Argument {
  /** `length`: the length of a column, by which generated code clamps reads. */
  readonly kind: 'buffer' | 'length' | 'size'
  /** The name in the launch. */
  readonly name: string
  /** The number of the fused launch. */
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

/** Maximum number of cached sources, shared by all devices. */
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

  /** The kernel of a launch. */
  of(spec: LaunchSpec): Slot {
    const key = structureOf(spec)
    return this.#slots.get(key) ?? this.#add(key, spec, 1)
  }

  /** The kernel of `count` fused launches with this structure. */
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

/** The structure of a launch, which determines its kernel. */
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
