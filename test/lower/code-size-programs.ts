/** Programs that grow in one dimension, each of which some stage could make exponentially or quadratically larger. */
const seq = (n: number, f: (k: number) => string): string[] => Array.from({ length: n }, (_, k) => f(k))
const nest = (n: number, inner: string, f: (e: string, k: number) => string): string =>
  Array.from({ length: n }).reduce<string>((e, _, k) => f(e, k), inner)

const kernel = (
  body: string,
  buffers = 'buffer x: i32[i] in\n  buffer p: i32[i] in\n  buffer y: i32[i] out',
  as = 'S',
) => `
kernel grow(n: size) {
  axis i = dense_fixed(n)
  ${buffers}
  iterate go [i] as ${as} {
    ${body}
  }
}
`
const INOUT = 'buffer x: i32[i] in\n  buffer p: i32[i] in\n  buffer y: i32[i] inout'

type Step = (a: string, k: number) => string
const lets = (n: number, step: Step, first: string): string =>
  [`let a0 = ${first}`, ...seq(n, (k) => `let a${k + 1} = ${step(`a${k}`, k)}`)].join('\n    ')

/** A chain of `let`s over a value that is stored, used as an index, and kept under its own writes. */
const chain = (step: Step) => (n: number) => kernel(`${lets(n, step, 'x[i]')}\n    y[i] = a${n}`)
const indices = (step: Step) => (n: number) => kernel(`${lets(n, step, 'p[i]')}\n    y[i] = x[a${n} % 4]`)
const inPlace = (step: Step) => (n: number) => kernel(`${lets(n, step, 'y[i]')}\n    y[i] = a${n}`, INOUT)

export type Program = (n: number) => string

/** What is shared: text and plan grow with the source. */
export const SHARED: Readonly<Record<string, Program>> = {
  'a let twice in the next': chain((a) => `${a} + ${a}`),
  'a let twice in the next, over what is written': inPlace((a) => `${a} * 3 - ${a}`),
  'lets in branches': chain((a, k) => `select(p[i] > ${k}, ${a} + 1, ${a} * 2)`),
  'lets in branches of several selects': chain(
    (a, k) => `select(p[i] > ${k}, ${a}, 0) + select(p[i] < ${k}, ${a}, 1)`,
  ),
  'lets in branches, over what is written': inPlace(
    (a, k) => `select(y[i] > ${k}, ${a}, 7) + select(p[i] < ${k}, ${a}, 1)`,
  ),
  'lets as operands of functions': chain((a) => `max(${a} - 1, abs(${a}))`),
  'lets in conversions': chain((a) => `i32(f32(${a} % 100)) + ${a}`),
  'lets as sums in an index': indices((a) => `${a} + ${a}`),
  'lets as products in an index': indices((a) => `${a} * ${a} % 5`),
  'lets as loads in an index': indices((a) => `p[${a} % 4] + p[(${a} + 1) % 4]`),
  'lets as quotients in an index': indices((a) => `${a} % 7 + ${a} / 3`),
  'lets as bounds in an index': indices((a) => `min(${a}, ${a} * 2)`),
  'lookups of remainders in a condition of threads': (n) =>
    kernel('y[i] = 1').replace('as S {', `as S where (${nest(n, 'i', (e) => `p[${e} % 4]`)} > 0) {`),
  'conditions in lets': (n) =>
    kernel(
      `let b0 = p[i] > 0\n    ${seq(n, (k) => `let b${k + 1} = (b${k} and p[i] < ${k}) or (b${k} and x[i] > 0)`).join('\n    ')}
    if (b${n}) { y[i] += 1 }`,
      INOUT,
    ),
  'conjunctions in lets': (n) =>
    kernel(
      `let b0 = p[i] > 0\n    ${seq(n, (k) => `let b${k + 1} = b${k} and (p[i] < ${k} and b${k})`).join('\n    ')}
    if (b${n}) { y[i] += 1 }`,
      INOUT,
    ),
  'an index of an index': (n) => kernel(`y[i] = x[${nest(n, 'i', (e) => `p[${e}]`)}]`),
  'a target at an index of an index': (n) =>
    kernel(`y[${nest(n, 'i', (e) => `p[${e}]`)}] += x[i]`, INOUT, 'R'),
  'a sparse index of an index': (n) => `
kernel grow(n: size) {
  axis i = dense_fixed(n)
  axis j = sparse_variable(i, n)
  buffer p: i32[i, j] in
  buffer y: i32[i] out
  iterate go [i] as S { y[i] = ${nest(n, 'i', (e) => `p[i, ${e}]`)} }
}`,
  'lookups in a tree of sparse axes': (n) => `
kernel grow(n: size) {
  axis i = dense_fixed(n)
  axis j = sparse_variable(i, n)
  axis k = sparse_variable(j, n)
  buffer p: i32[i, j, k] in
  buffer y: i32[i] out
  iterate go [i] as S { y[i] = ${nest(n / 4, 'i', (e) => `p[i + 1, i, ${e}]`)} + ${nest(n / 4, 'i', (e) => `p[${e}, i + 1, i]`)} }
}`,
  'an index of an index beyond the array': (n) =>
    kernel(`y[i] = x[${nest(n, 'i', (e, k) => `p[${e}${k % 3 === 0 ? ' + 3' : ' - 2'}]`)}]`),
  'a chain of selects': (n) =>
    kernel(`y[i] = ${nest(n, 'x[i]', (e, k) => `select(p[i] == ${k}, ${k}, ${e})`)}`),
  'terms of a condition': (n) =>
    kernel('y[i] += x[i]', INOUT, `S where (${seq(n, (k) => `p[i] != ${k}`).join(' and ')})`),
  'alternatives of a condition': (n) =>
    kernel('y[i] += x[i]', INOUT, `S where (${seq(n, (k) => `p[i] == ${k}`).join(' or ')})`),
  statements: (n) => kernel(seq(n, (k) => `y[i] += x[i] * ${k}`).join('\n    '), INOUT),
  iterations: (n) => `
kernel grow(n: size) {
  axis i = dense_fixed(n)
  buffer x: i32[i] in
  buffer y: i32[i] inout
  ${seq(n, (k) => `iterate go${k} [i] as S { y[i] += x[i] }`).join('\n  ')}
}`,
  'iterations within one': (n) => `
kernel grow(n: size) {
  axis i = dense_fixed(n)
  axis j = dense_fixed(n)
  buffer x: i32[j] in
  buffer y: i32[i] inout
  iterate go [i] as S {
    ${seq(n, (k) => `iterate in${k} [j] as R { y[i] += x[j] }`).join('\n    ')}
  }
}`,
  buffers: (n) => `
kernel grow(n: size) {
  axis i = dense_fixed(n)
  ${seq(n, (k) => `buffer x${k}: i32[i] in`).join('\n  ')}
  buffer y: i32[i] out
  iterate go [i] as S { y[i] = ${seq(n, (k) => `x${k}[i]`).join(' + ')} }
}`,
  'buffers in a chain': (n) => `
kernel grow(n: size) {
  axis i = dense_fixed(n)
  buffer t0: i32[i] in
  ${seq(n, (k) => `buffer t${k + 1}: i32[i] ${k + 1 === n ? 'out' : 'local'}`).join('\n  ')}
  ${seq(n, (k) => `iterate go${k} [i] as S { t${k + 1}[i] = t${k}[i] + 1 }`).join('\n  ')}
}`,
  'loops that are fused': (n) => `
kernel grow(n: size) {
  axis i = dense_fixed(n)
  ${seq(n, (k) => `axis a${k} = dense_fixed(${k < 3 ? 2 : 1})`).join('\n  ')}
  buffer x: i32[i] in
  buffer y: i32[i] out
  iterate go [i, ${seq(n, (k) => `a${k}`).join(', ')}] as S${'R'.repeat(n)} { y[i] += x[i] }
}
schedule grow.s {
  split i by 2 -> (io, ii)
  fuse (${seq(n, (k) => `a${k}`).join(', ')}) -> f
  split f by 3 -> (fo, fi)
}`,
  'parts with steps for each': (n) => `
format rows over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
format ranges(c) over (i, j) { partition j into c { part rows } }
kernel grow(n: size) {
  axis i = dense_fixed(n)
  axis j = sparse_variable(i, n)
  axis q = dense_fixed(n)
  buffer A: i32[i, j] in
  buffer x: i32[q] in
  buffer y: i32[i] out
  iterate go [i, j] as SR { y[i] += A[i, j] * x[j] }
}
schedule grow.s {
  A as ranges(${n})
  atomic y
  each part of A as p { split p.io by 2 -> (o, r) }
}`,
  'a long combine': (n) => `
monoid most(a: i32) {
  identity (-2147483647)
  combine (l, r) = (${nest(n / 2, 'max(l.a, r.a)', (e) => `max(max(${e}, l.a), r.a)`)})
}
kernel grow(n: size) {
  axis i = dense_fixed(n)
  axis j = dense_fixed(n)
  buffer p: i32[j] in
  buffer y: i32[i] out
  iterate go [i, j] as SR { y[i] most= p[j] }
}`,
  'components of a monoid': (n) => `
monoid sums(${seq(n, (k) => `a${k}: i32`).join(', ')}) {
  identity (${seq(n, () => '0').join(', ')})
  combine (l, r) = (${seq(n, (k) => `l.a${k} + r.a${k}`).join(', ')})
}
kernel grow(n: size) {
  axis i = dense_fixed(n)
  axis j = dense_fixed(n)
  buffer p: i32[j] in
  ${seq(n, (k) => `buffer y${k}: i32[i] out`).join('\n  ')}
  iterate go [i, j] as SR { (${seq(n, (k) => `y${k}[i]`).join(', ')}) sums= (${seq(n, () => 'p[j]').join(', ')}) }
}`,
}

const cube = (n: number): string => `
kernel grow(n: size) {
  axis i = dense_fixed(n)
  axis a = dense_fixed(${n})
  axis b = dense_fixed(${n})
  axis c = dense_fixed(${n})
  buffer x: i32[a, b, c] in
  buffer y: i32[a, b, c] out
  iterate go [a, b, c] as SSS { y[a, b, c] = x[a, b, c] }
}`

/** What has to be written out, and is refused where it would be too long. */
export const WRITTEN_OUT: Readonly<Record<string, { readonly program: Program; readonly code: string }>> = {
  'unrolled loops within each other': {
    program: (n) => `${cube(n)}\nschedule grow.s { unroll a\n unroll b\n unroll c }`,
    code: 'schedule/too-many-copies',
  },
  'a loop unrolled after the loop that it came into': {
    program: (n) => `${cube(n)}\nschedule grow.s { unroll c\n unroll b\n unroll a }`,
    code: 'schedule/too-many-copies',
  },
  'a schedule twice in the next': {
    program: (n) => `${kernel('y[i] = x[i] + p[i]')}
schedule grow.u0 { require n % 2 == 0 }
${seq(n, (k) => `schedule grow.u${k + 1} { use u${k}\n use u${k} }`).join('\n')}
schedule grow.s { use u${n} }`,
    code: 'schedule/too-many-steps',
  },
  'a schedule of coordinates twice in the next': {
    program: (n) => `${cube(3)}
schedule grow.u0 { reorder (b, a, c) }
${seq(n, (k) => `schedule grow.u${k + 1} { use u${k}\n use u${k} }`).join('\n')}
schedule grow.s { use u${n}\n split a by 4 -> (ao, ai) }`,
    code: 'schedule/too-many-steps',
  },
  'splits of what was split': {
    program: (n) =>
      `${cube(3)}\nschedule grow.s {\n${seq(5 * n, (k) => `  split ${k === 0 ? 'a' : `o${k - 1}`} by 2 -> (o${k}, i${k})`).join('\n')}\n}`,
    code: 'schedule/too-deep',
  },
  'iterators within each other': {
    program: (n) => {
      const axes = seq(4 * n, (k) => `a${k}`)
      return `kernel grow(n: size) {
${axes.map((a) => `  axis ${a} = dense_fixed(2)`).join('\n')}
  buffer x: i32[${axes.join(', ')}] in
  buffer y: i32[${axes.join(', ')}] out
  iterate go [${axes.join(', ')}] as ${'S'.repeat(4 * n)} { y[${axes.join(', ')}] = x[${axes.join(', ')}] }
}
schedule grow.s { unroll a0 }`
    },
    code: 'check/too-deep',
  },
  'lets upon lets': {
    program: (n) => kernel(`${lets(60 * n, (a) => `${a} + 1 - p[i]`, 'x[i]')}\n    y[i] = a${60 * n}`),
    code: 'check/too-deep',
  },
}
