"""The experiment of the tests of the regression gate."""

NIGHTLY = """
name: nightly
data: garden
tokenizer: words
chunker: {fixed: {size: 20}}
retriever: bm25
selector: [{top_k: {k: 4}}]
metrics: [recall@3, mrr]
gate: {margins: {recall@3: 0.02}}
"""
