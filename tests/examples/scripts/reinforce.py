"""Policy gradients: a Categorical policy, discounted returns, a tiny environment."""

from collections import deque
from itertools import count

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical, Normal

torch.manual_seed(543)


class Walk:
    """Stay near 0: the state is (position, speed), the actions push left or right."""

    def reset(self):
        self.state = torch.zeros(2)
        return self.state

    def step(self, action):
        position, speed = self.state.tolist()
        noise = Normal(torch.tensor(0.0), torch.tensor(0.02)).sample().item()
        speed += (0.1 if action == 1 else -0.1) + noise
        position += speed
        self.state = torch.tensor([position, speed])
        return self.state, 1.0 - abs(position), abs(position) > 1


class Policy(nn.Module):
    def __init__(self):
        super(Policy, self).__init__()
        self.affine1 = nn.Linear(2, 32)
        self.dropout = nn.Dropout(p=0.2)
        self.affine2 = nn.Linear(32, 2)
        self.saved_log_probs = []
        self.rewards = []

    def forward(self, x):
        x = self.affine1(x)
        x = self.dropout(x)
        x = F.relu(x)
        return F.softmax(self.affine2(x), dim=1)


policy = Policy()
optimizer = optim.Adam(policy.parameters(), lr=1e-2)
eps = torch.finfo(torch.float32).eps


def select_action(state):
    probs = policy(state.unsqueeze(0))
    m = Categorical(probs)
    action = m.sample()
    policy.saved_log_probs.append(m.log_prob(action))
    return action.item(), m.entropy()


def finish_episode():
    R = 0
    policy_loss = []
    returns = deque()
    for r in policy.rewards[::-1]:
        R = r + 0.99 * R
        returns.appendleft(R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + eps)
    for log_prob, R in zip(policy.saved_log_probs, returns):
        policy_loss.append(-log_prob * R)
    optimizer.zero_grad()
    policy_loss = torch.cat(policy_loss).sum()
    policy_loss.backward()
    optimizer.step()
    del policy.rewards[:]
    del policy.saved_log_probs[:]
    return policy_loss.item()


running_reward = 10.0
env = Walk()
for i_episode in range(1, 9):
    state, ep_reward = env.reset(), 0
    for t in count(1):
        action, entropy = select_action(state)
        state, reward, done = env.step(action)
        policy.rewards.append(reward)
        ep_reward += reward
        if done or t == 40:
            break
    running_reward = 0.05 * ep_reward + (1 - 0.05) * running_reward
    loss = finish_episode()
    print("Episode {}\tLength: {}\tLast reward: {:.3f}\tAverage reward: {:.3f}\tLoss {:.3f}".format(
        i_episode, t, ep_reward, running_reward, loss))
print("entropy {:.4f}".format(entropy.item()))
