/** The kernel of gradients of a kernel: its options, and their checks. */
import type { Diagnostic } from '../../ast/diagnostics/diagnostic.ts'
import { expectFields, expectValue, FUNCTION, TEXT, TEXTS } from '../../ast/diagnostics/value-kinds.ts'
import { isName } from '../../ast/nodes/names.ts'
import { gradient } from '../../derive/gradient.ts'
import { kernelIdentifier } from '../../ir/coordinates/derived-names.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { expectArgument, expectName } from '../inputs/argument-checks.ts'

/** How a gradient is derived. */
export interface GradientOptions {
  /** Name of the new kernel; default: `KERNEL_gradient`. */
  readonly name?: string
  /** Tensors and scalars that are constants: no gradient flows through them. */
  readonly stopping?: readonly string[]
  /** Sparse tensors among those of the request whose gradients are dense: also at coordinates that are not stored. */
  readonly dense?: readonly string[]
  /** Temporaries that the backward pass computes again, in place of keeping them. */
  readonly recomputing?: readonly string[]
  /** f16 or bf16 temporaries whose gradients are rounded to their type, for tensor cores. They are f32 otherwise. */
  readonly rounding?: readonly string[]
  /** Called for functions without a gradient, such as `floor`; default: `console.warn`. */
  readonly onWarning?: (warning: Diagnostic) => void
}

const GRADIENT_OPTIONS = {
  name: TEXT,
  stopping: TEXTS,
  dense: TEXTS,
  recomputing: TEXTS,
  rounding: TEXTS,
  onWarning: FUNCTION,
}

const printWarning = ({ code, message, hint }: Diagnostic): void =>
  console.warn(`warning[${code}]: ${message}\n  = hint: ${hint}`)

/** See `Kernel.gradient`. @throws SptError `derive/…`, `api/…` */
export function derivedKernel(
  source: Kernel1,
  by: string,
  wrt: readonly string[],
  options: GradientOptions,
): Kernel1 {
  expectName('the output of a gradient', by)
  expectValue('the tensors of a gradient', wrt, TEXTS)
  expectFields<GradientOptions>('gradient', options, GRADIENT_OPTIONS)
  const { name = `${kernelIdentifier(source.name)}_gradient` } = options
  expectArgument(
    isName(name),
    'the name of a gradient',
    name,
    'a name: a letter or _, then letters, digits and _',
  )
  const named = (names: readonly string[] = []) => names.map((name) => ({ name }))
  const derived = gradient(source, {
    name,
    by: { name: by },
    wrt: wrt.map((x) => ({ name: x, dense: options.dense?.includes(x) ?? false })),
    stopping: named(options.stopping),
    recomputing: named(options.recomputing),
    rounding: named(options.rounding),
  })
  for (const w of derived.warnings ?? []) (options.onWarning ?? printWarning)(w)
  return derived
}
