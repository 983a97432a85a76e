/** Execution of the generated instruction tests on a device. */
import { flatInputs } from '../api/inputs/flat-inputs.ts'
import { type Diagnostic, InternalError, SptError } from '../ast/diagnostics/diagnostic.ts'
import { targetOf } from '../backends/targets/index.ts'
import type { Instr } from '../ir/instructions/instr.ts'
import type { Device } from '../runtime/device.ts'
import { ASYNC_DISPOSE } from '../runtime/dispose.ts'
import { decoder } from '../storage/tensor.ts'
import { type InstructionTest, instructionTests, packedOperand } from './instruction-test.ts'

/** Result of testing a declaration on a device. */
export interface Verdict {
  /** `untested`: the instruction has no text for the device, or the device lacks a required feature. */
  readonly kind: 'right' | 'wrong' | 'untested'
  /** Explanations as text, one per line. */
  readonly why: readonly string[]
}

/** Runs instruction tests. The device is opened on demand, because a wrong instruction may break it. */
export class InstructionVerifier {
  #device: Device | undefined
  /** Name of the instruction that faulted; after some faults the process cannot use the device again. */
  #faulted: string | undefined

  constructor(private readonly open: () => Promise<Device>) {}

  /** Opens the device. Throws SptError if there is none. */
  async device(): Promise<Device> {
    this.#device ??= await this.open()
    return this.#device
  }

  /** Runs the tests of an instruction. Instructions among `others` load and store opaque tiles. */
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
      // After a fault the device is unusable, so it is reopened.
      const faults = (d: Diagnostic): boolean => d.code.startsWith('device/') && d.code !== 'device/compile'
      if (!lacks && diagnostics.some(faults)) {
        this.#faulted = instr.name
        await this[ASYNC_DISPOSE]()
      }
      return { kind: lacks ? 'untested' : 'wrong', why: diagnostics.map(lineOf) }
    }
  }

  async [ASYNC_DISPOSE](): Promise<void> {
    const device = this.#device
    this.#device = undefined
    await device?.dispose()
  }
}

const LACKS: ReadonlySet<string> = new Set(['device/no-instruction', 'emit/no-instruction'])

const lineOf = (d: Diagnostic): string => `${d.code}: ${d.message}`

/** Differences between a device's arrays and those of the reference, including modified inputs, as text. */
async function differences({ kernel, inputs }: InstructionTest, device: Device): Promise<readonly string[]> {
  using compiled = await kernel.build(device)
  using prepared = await compiled.bind(...flatInputs(inputs))
  const { problems, maxAbsoluteError } = await prepared.verify()
  const found = [...problems]
  // The data are integers, so sums are exact in any order.
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
}
