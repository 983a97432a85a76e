/** C11 with OpenMP: one function per launch, whose blocks run in parallel. The code is only printed; no device runs it. */

import { isOne, variable } from '../../../ir/expressions/expr.ts'
import type { ThreadAxis } from '../../../ir/expressions/expr-nodes.ts'
import { dimensionOf } from '../../../ir/instructions/hardware-axes.ts'
import type { Kernel3, Launch } from '../../../ir/statements/loops.ts'
import { argsOf, type LaunchUse, launchUses } from '../../launch-uses.ts'
import type { Entry, PrintedModule } from '../../module.ts'
import { type Printer, printerOf } from '../../print/printer.ts'
import { Mangler, reservedWords } from '../../print/reserved-words.ts'
import type { Helpers } from '../../print/spellings.ts'
import type { Target } from '../../target.ts'
import { MEMORY } from '../c-family.ts'
import { HELPERS } from './helpers.ts'
import { SPELLINGS } from './spellings.ts'
import { serialThreads } from './thread-loops.ts'

export const C = {
  scheduleDevice: 'cpu',
  parallel: true,
  grid: false,
  extension: '.c',
  lowering: { promote: true },
  reusesShared: false,
  declared: { addresses: false },
  print: (plan, { wide }) => [cModule(plan, launchUses(plan), wide)],
} as const satisfies Target

/** Prints Stage III as C: one function for each launch. Blocks are iterations of a parallel loop, threads of serial loops. */
function cModule(plan: Kernel3, uses: readonly LaunchUse[], wide = false): PrintedModule {
  const helpers: Helpers = new Map()
  const functions: string[] = []
  const entries: Entry[] = []
  const buffers = new Map(plan.buffers.map((b) => [b.name, b]))
  for (const use of uses) {
    const launch = serialThreads(use.launch)
    const mangler = new Mangler(reserved())
    const entry = mangler.unique(launch.name)
    const context = { target: SPELLINGS, mangler, helpers, buffers, param: () => undefined, wide }
    const printer = printerOf(context, launch)
    const args = argsOf(use)
    const parameters = args.map((a) => {
      const name = mangler.name(a.name)
      if (a.kind === 'scalar') return `${SPELLINGS.type(a.dtype)} ${name}`
      const constant = a.kind === 'buffer' && a.access === 'read' ? 'const ' : ''
      return `${constant}${MEMORY[a.dtype]}* restrict ${name}`
    })
    functions.push(functionText(launch, entry, parameters, printer))
    entries.push({ name: entry, args, block: use.launch.block, sharedBytes: 0 })
  }
  const includes = '#include <math.h>\n#include <stdbool.h>'
  return { name: plan.name, text: `${[includes, ...helpers.values(), ...functions].join('\n\n')}\n`, entries }
}

function functionText(launch: Launch, name: string, parameters: readonly string[], printer: Printer): string {
  const axes = (['block.z', 'block.y', 'block.x'] as const).filter((a) => !isOne(extentOf(launch, a)))
  const indent = '  '.repeat(axes.length + 1)
  const loopHeaders = axes.map((a, k) => {
    const index = printer.expr(variable(a))
    return `${'  '.repeat(k + 1)}${printer.forHeader(index, extentOf(launch, a))} {`
  })
  const collapsed = axes.length > 1 ? ` collapse(${axes.length})` : ''
  return [
    `void ${name}(${parameters.join(', ')}) {`,
    ...(axes.length > 0 ? [`  #pragma omp parallel for${collapsed}`] : []),
    ...loopHeaders,
    ...printer.body(launch.body, indent),
    ...loopHeaders.map((_, k) => `${'  '.repeat(axes.length - k)}}`),
    '}',
  ].join('\n')
}

const extentOf = (launch: Launch, axis: ThreadAxis) => launch.grid[dimensionOf(axis)]!

// Reserved words of generated C.

/** Keywords of C11, names of the included headers, and builtin functions of compilers. */
const LANGUAGE = `
auto break case char const continue default do double else enum extern float for goto if inline int long register
restrict return short signed sizeof static struct switch typedef union unsigned void volatile while asm typeof bool
true false main NAN INFINITY HUGE_VAL HUGE_VALF HUGE_VALL FP_NAN FP_INFINITE FP_NORMAL FP_SUBNORMAL FP_ZERO
FP_ILOGB0 FP_ILOGBNAN MATH_ERRNO MATH_ERREXCEPT math_errhandling isnan isinf isfinite isnormal signbit fpclassify
float_t double_t MAXFLOAT M_PI M_E linux unix abort abs acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos
cosh erf erfc exit exp exp2 expm1 fabs fdim floor fma fmax fmin fmod frexp hypot ilogb labs ldexp lgamma llrint
llround log log10 log1p log2 logb lrint lround malloc free calloc memcpy memset modf nan nearbyint nextafter
nexttoward pow printf puts remainder remquo rint round scalbln scalbn sin sinh sqrt strlen tan tanh tgamma trunc j0 j1
jn y0 y1 yn gamma drem finite significand scalb signgam`

const reserved = reservedWords(LANGUAGE, [SPELLINGS], HELPERS, [])
