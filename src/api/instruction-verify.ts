/** Running the generated tests of declared instructions on a device. */
import { type Diagnostic, InternalError, SptError } from '../ast/diagnostic.ts'
import { targetOf } from '../backends/targets/index.ts'
import { add, int, mod, variable } from '../ir/expr.ts'
import { substitute } from '../ir/expr-tree.ts'
import { type Instr, type Memory, SLOT } from '../ir/instr.ts'
import type { Device } from '../runtime/device.ts'
import { decoder } from '../storage/values.ts'
import { type InstructionTest, instructionTests, packedOperand } from './instruction-test.ts'

/** What a device says of a declaration. */
export interface Verdict {
  /** `untested`: there is no text for the device, or it lacks what the text needs. */
  readonly kind: 'right' | 'wrong' | 'untested'
  /** Lines for people. */
  readonly why: readonly string[]
}

/** Devices that are opened when they are needed: a wrong text may break one. */
export class InstructionVerifier {
  readonly #open: () => Promise<Device>
  #device: Device | undefined
  /** What faulted; some faults leave nothing that a process could use again. */
  #faulted: string | undefined

  constructor(open: () => Promise<Device>) {
    this.#open = open
  }

  /** @throws SptError where there is no device */
  async device(): Promise<Device> {
    this.#device ??= await this.#open()
    return this.#device
  }

  /** Tiles that are objects of a target are brought and fetched by instructions among `others`. */
  async verify(instr: Instr, others: readonly Instr[] = []): Promise<Verdict> {
    const device = await this.device().catch((error: unknown) => {
      if (this.#faulted === undefined || !(error instanceof SptError)) throw error
      return undefined
    })
    if (!device)
      return { kind: 'untested', why: [`the device did not come back after ${this.#faulted} had faulted`] }
    const target = targetOf(device)
    if (!instr.texts.some((t) => t.target === target))
      return { kind: 'untested', why: [`it has no text for ${target}`] }
    const packed = packedOperand(instr)
    if (packed)
      return {
        kind: 'untested',
        why: [`${packed.name} is packed, which are arrays of formats alone: kernels in such formats test it`],
      }
    try {
      const why: string[] = []
      for (const test of instructionTests(instr, others)) why.push(...(await differences(test, device)))
      return { kind: why.length > 0 ? 'wrong' : 'right', why }
    } catch (error) {
      if (!(error instanceof Error) || error instanceof InternalError) throw error
      if (!(error instanceof SptError)) return { kind: 'wrong', why: [`${error.name}: ${error.message}`] }
      const { diagnostics } = error
      const lacks = diagnostics.some((d) => LACKS.has(d.code))
      // After a fault nothing else runs on a device.
      const faults = (d: Diagnostic): boolean => d.code.startsWith('device/') && d.code !== 'device/compile'
      if (!lacks && diagnostics.some(faults)) {
        this.#faulted = instr.name
        await this.dispose()
      }
      return { kind: lacks ? 'untested' : 'wrong', why: diagnostics.map(lineOf) }
    }
  }

  async dispose(): Promise<void> {
    const device = this.#device
    this.#device = undefined
    await device?.dispose()
  }
}

const LACKS: ReadonlySet<string> = new Set(['device/no-instruction', 'emit/no-instruction'])

const lineOf = (d: Diagnostic): string => `${d.code}: ${d.message}`

/** Where arrays are not, bit for bit or as numbers, what the reference leaves there. */
async function differences({ kernel, inputs }: InstructionTest, device: Device): Promise<readonly string[]> {
  const compiled = await kernel.compile(device)
  try {
    const prepared = await compiled.prepare(inputs)
    try {
      const { problems, maxAbsoluteError } = await prepared.verify()
      const found = [...problems]
      // Data are integers: sums are exact in any order.
      if (found.length === 0 && maxAbsoluteError !== 0) found.push(`results differ by ${maxAbsoluteError}`)
      const { executable } = prepared
      for (const b of kernel.compilation.source.buffers) {
        if (b.role !== 'in') continue
        const [before, after] = [executable.bound.arrays.get(b.name)!, await executable.values(b.name)]
        const read = decoder(b.dtype) ?? Number
        const e = before.findIndex((x: number, k: number) => !Object.is(x, after[k]))
        if (e >= 0)
          found.push(
            `${b.name}, which it reads, is changed: element ${e} was ${read(before[e]!)} and is ${read(after[e]!)}`,
          )
      }
      return found
    } finally {
      prepared.free()
    }
  } finally {
    compiled.release()
  }
}

/** The same declaration with the elements of one register memory in other slots: a test has to fail. */
export function mistaken(instr: Instr, operand: string): Instr {
  const moved = (m: Memory): Memory => {
    const next = mod(add(variable(SLOT), int(1)), int(m.size))
    const element = m.element.map((e) => substitute(e, new Map([[SLOT, next]])))
    return { ...m, name: `${m.name}_moved`, element }
  }
  return {
    ...instr,
    operands: instr.operands.map((o) =>
      o.name === operand && o.memory?.scope === 'register' ? { ...o, memory: moved(o.memory) } : o,
    ),
  }
}

/** The register memories of an instruction that could be declared otherwise, by operand. */
export const movable = (instr: Instr): readonly string[] =>
  instr.operands.flatMap((o) => (o.memory?.scope === 'register' && o.memory.size > 1 ? [o.name] : []))
