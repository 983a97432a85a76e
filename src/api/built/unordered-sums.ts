/** Deterministic compilation: schedules whose floating-point sums have no fixed order are rejected. */
import { failAs } from '../../ast/diagnostics/diagnostic.ts'
import type { Compilation } from '../../run/compile/compile.ts'
import type { DeviceProperties } from '../../run/compile/device-limits.ts'
import { type Defaulted, runOn } from '../../run/compile/program.ts'
import { type UnorderedSum, unorderedSums } from '../../run/verify/unordered-sums.ts'
import type { CompiledCode } from './code.ts'

/** Sums without a fixed order of a kernel on a device, under its steps and default thread bindings. Throws SptError as lowering. */
export function sumsOf<K extends Defaulted<K> & { readonly compilation: Compilation }>(
  kernel: K,
  device: DeviceProperties,
): readonly UnorderedSum[] {
  const { kind } = device
  if (kind === 'cpu') return []
  const { compilation } = runOn<K>(kernel, kind)
  return unorderedSums(compilation.loops, compilation.planOn(device), kind)
}

/** The first sum, and the number of others. */
export function sumsText([first, ...others]: readonly UnorderedSum[]): string {
  const { launch, buffer, reducer } = first!
  const more = others.length > 0 ? ` (and ${others.length} more)` : ''
  return `${launch} updates ${buffer} by \`${reducer}\` in no fixed order${more}`
}

/** Throws SptError `choose/unordered-sum` if there is a sum without a fixed order. */
export function checkSums(kernel: string, sums: readonly UnorderedSum[]): void {
  if (sums.length > 0)
    failAs('choose/unordered-sum', {
      message: `the result of kernel ${kernel} is not deterministic: ${sumsText(sums)}`,
      expected: 'a schedule without atomic updates of floats',
      hint: 'name another schedule, apply parallel(), or leave out `deterministic`',
    })
}

/** Throws like `checkSums`, after releasing the compiled kernel. */
export function checkOrdered(code: CompiledCode): CompiledCode {
  if (code.unorderedSums.length > 0) code.release()
  checkSums(code.name, code.unorderedSums)
  return code
}
