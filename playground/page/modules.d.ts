/** Modules that playground/build.mjs computes. */
declare module 'playground:words' {
  const words: {
    readonly keywords: readonly string[]
    readonly types: readonly string[]
    /** The forms of each step: `split LOOP by N -> (NAME, NAME)`. */
    readonly steps: Readonly<Record<string, readonly string[]>>
  }
  export default words
}
declare module 'playground:examples' {
  const examples: readonly {
    readonly group: string
    readonly id: string
    readonly title: string
    /** Without a text: a file of the package. */
    readonly text?: string
    readonly preset: { readonly view?: string; readonly matrix?: string }
  }[]
  export default examples
}
