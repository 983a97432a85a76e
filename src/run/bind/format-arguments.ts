/** Refusals of what a format stores, with the arguments that it has: they may be others than the tensor was made for. */
import { SptError } from '../../ast/diagnostic.ts'
import type { Kernel1 } from '../../ir/stage1.ts'

/** What an axis does not hold as wide as it is says of which format the axis is, with its arguments. */
export function withArguments<T>(kernel: Kernel1, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof SptError)) throw error
    const told = error.diagnostics.map((d) => {
      const of = d.code === 'bind/width' && d.span ? argumentsAt(kernel, d.span) : undefined
      return of === undefined ? d : { ...d, message: `${d.message} (${of})` }
    })
    throw Object.assign(new SptError(told), { sources: error.sources })
  }
}

/** `tile_wise(g = 128, s = 64)`, of the format that has an axis there. */
function argumentsAt({ reformats }: Kernel1, span: object): string | undefined {
  const parts = reformats.flatMap((r) => r.instance.parts.map((p) => p.instance))
  const found = parts.find((p) => p.constants.size > 0 && p.axes.some((a) => a.span === span))
  if (!found) return undefined
  const given = [...found.constants].map(([name, value]) => `${name} = ${value}`)
  return `${found.text.split('(')[0]}(${given.join(', ')})`
}
