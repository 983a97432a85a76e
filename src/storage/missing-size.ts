/** The diagnostic for a size or scalar parameter without a value. */
import type { Diagnostic } from '../ast/diagnostics/diagnostic.ts'
import type { Param } from '../ir/coordinates/stage1.ts'
import { isFloat } from '../ir/values/dtype.ts'

type Missing = Partial<Pick<Param, 'kind' | 'dtype'>> & {
  readonly name: string
  /** End of the message: `of kernel k`, `(schedule auto depends on it)`. */
  readonly of: string
  /** Inputs whose shapes determine the size. */
  readonly inputs?: readonly string[]
}

/**
 * The diagnostic `bind/missing-size` or `bind/missing-scalar`. It has no span, because the value is missing in a call,
 * not in the program.
 */
export function missingValue({ name, kind = 'size', dtype, of, inputs = [] }: Missing): Diagnostic {
  const example = kind === 'size' ? '64' : dtype === 'bool' ? 'true' : dtype && isFloat(dtype) ? '0.5' : '1'
  return {
    code: kind === 'size' ? 'bind/missing-size' : 'bind/missing-scalar',
    message: `missing ${kind} ${name} ${of}`,
    hint: [`params: { ${name}: ${example} }`, ...inputs.map((input) => `bind ${input}`)].join(', or '),
    commandHint: [`--size ${name}=${example}`, ...inputs.map((input) => `--bind ${input}=PATH`)].join(
      ', or ',
    ),
  }
}
