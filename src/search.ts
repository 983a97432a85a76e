/** sparsetile/search, in Node: what was measured is kept, and found again. */
export * from './search/records/index.ts'
