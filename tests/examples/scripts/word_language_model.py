"""A recurrent language model: truncated back-propagation through time and gradient clipping."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Dictionary(object):
    def __init__(self):
        self.word2idx = {}
        self.idx2word = []

    def add_word(self, word):
        if word not in self.word2idx:
            self.idx2word.append(word)
            self.word2idx[word] = len(self.idx2word) - 1
        return self.word2idx[word]

    def __len__(self):
        return len(self.idx2word)


class RNNModel(nn.Module):
    def __init__(self, rnn_type, ntoken, ninp, nhid, nlayers, dropout=0.2, tie_weights=True):
        super(RNNModel, self).__init__()
        self.ntoken = ntoken
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = getattr(nn, rnn_type)(ninp, nhid, nlayers, dropout=dropout)
        self.decoder = nn.Linear(nhid, ntoken)
        if tie_weights:
            self.decoder.weight = self.encoder.weight
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)
        self.nhid, self.nlayers = nhid, nlayers

    def forward(self, input, hidden):
        emb = self.drop(self.encoder(input))
        output, hidden = self.rnn(emb, hidden)
        output = self.drop(output)
        decoded = self.decoder(output)
        decoded = decoded.view(-1, self.ntoken)
        return F.log_softmax(decoded, dim=1), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        return (weight.new_zeros(self.nlayers, bsz, self.nhid),
                weight.new_zeros(self.nlayers, bsz, self.nhid))


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    data = data.narrow(0, 0, nbatch * bsz)
    return data.view(bsz, -1).t().contiguous()


def repackage_hidden(h):
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


def get_batch(source, i, bptt=8):
    seq_len = min(bptt, len(source) - 1 - i)
    return source[i:i + seq_len], source[i + 1:i + 1 + seq_len].view(-1)


torch.manual_seed(1111)
text = "the quick brown fox jumps over the lazy dog <eos> " * 24
corpus = Dictionary()
ids = torch.LongTensor([corpus.add_word(word) for word in text.split()])
train_data = batchify(ids, 4)
model = RNNModel("LSTM", len(corpus), 16, 16, 2)
criterion = nn.NLLLoss()
lr = 5.0

for epoch in range(1, 4):
    model.train()
    total_loss = 0.0
    hidden = model.init_hidden(4)
    steps = range(0, train_data.size(0) - 1, 8)
    for i in steps:
        data, targets = get_batch(train_data, i)
        model.zero_grad()
        hidden = repackage_hidden(hidden)
        output, hidden = model(data, hidden)
        loss = criterion(output, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-lr)
        total_loss += loss.item()
    cur_loss = total_loss / len(steps)
    print("| epoch {:3d} | lr {:02.2f} | loss {:5.3f} | ppl {:8.3f}".format(
        epoch, lr, cur_loss, math.exp(cur_loss)))
    lr /= 2.0

model.eval()
with torch.no_grad():
    hidden = model.init_hidden(1)
    word = torch.tensor([[corpus.word2idx["the"]]])
    output, hidden = model(word, hidden)
    weights = output.squeeze().exp()
    print("probabilities", weights.topk(3).values)
